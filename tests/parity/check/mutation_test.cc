// Every attribute and every argument of every communication op, and of every op that a pserver runs, is
// changed in turn: each change is found, or stands on the list of those that do no harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "operators/all_ops.h"
#include "tests/parity/check/edit_set.h"
#include "tests/parity/check/role_sets.h"
#include "tests/support/corpus.h"

namespace penstock {
namespace {

using test::CaseFolder;
using test::OpAt;

// What may be changed without harm, as "op.attribute" or "*.attribute", with the reason.
const std::map<std::string, std::string>& Harmless() {
  static const std::map<std::string, std::string> harmless = {
      {"*.op_namescope", "tells people where an op comes from"},
      {"*.op_device", "where it runs, not what it does"},
      {"*.op_callstack", "tells people where an op comes from"},
      {"*.op_role", "roles are read before a program is distributed"},
      {"*.use_mkldnn", "another kernel for the same values"},
      {"*.use_cudnn", "another kernel for the same values"},
      {"*.use_quantizer", "another kernel for the same values"},
      {"listen_and_serv.rpc_get_thread_num", "how many threads answer"},
      {"listen_and_serv.rpc_send_thread_num", "how many threads answer"},
      {"listen_and_serv.rpc_prefetch_thread_num", "how many threads answer"},
  };
  return harmless;
}

bool IsHarmless(const std::string& type, const std::string& attr) {
  return Harmless().contains("*." + attr) || Harmless().contains(type + "." + attr);
}

// Single changes without harm, as they are called below.
const std::set<std::string>& HarmlessChanges() {
  static const std::set<std::string> harmless = {
      // Order that means nothing.
      "fetch_barrier.endpoints: turned round",
      "fetch_barrier.Out out: turned round",
      "send_barrier.endpoints: turned round",
      "send_barrier.X in: turned round",
      "listen_and_serv.X in: turned round",
      "listen_and_serv.optimize_blocks: turned round",
      "listen_and_serv.grad_to_block_id: turned round",
      "listen_and_serv.start_values: turned round",
      "sum.X in: turned round",
      // To wait for the same thing twice.
      "fetch_barrier.X in: first again",
      "send_barrier.X in: first again",
      "recv.X in: first again",
      // With a bias of 0, before or after is the same.
      "scale.bias_after_scale: turned",
      // Fluid says 0 whoever sends or asks; the trainer's own number is right too.
      "send.trainer_id: plus one",
      "prefetch.trainer_id: plus one",
      // A communicator sets it, to receive by itself.
      "recv.do_not_run: plus one",
  };
  return harmless;
}

// Doing again what does not read what it writes changes nothing, if it says nothing to anybody.
bool MayBeRepeated(const Op& op) {
  if (Has(op.role(), Role::kRpc)) return false;
  const auto inputs = op.InputNames();
  const auto outputs = op.OutputNames();
  return std::none_of(outputs.begin(), outputs.end(), [&](const std::string& name) {
    return std::find(inputs.begin(), inputs.end(), name) != inputs.end();
  });
}

struct Mutation {
  std::string what;  // "send.epmap: last one dropped"
  std::function<void(Op&)> make;
};

// Changes of one attribute, each to another value of its kind.
void AddAttr(const Op& op, const NamedAttr& attr, std::vector<Mutation>& out) {
  const std::string name = attr.name;
  const auto add = [&](std::string how, Attr value) {
    if (value == attr.value) return;
    out.push_back({StrCat(op.type(), ".", name, ": ", how), [name, value](Op& op) { op.Set(name, value); }});
  };
  if (const auto* value = std::get_if<std::int32_t>(&attr.value)) add("plus one", *value + 1);
  if (const auto* value = std::get_if<std::int64_t>(&attr.value)) add("plus one", *value + 1);
  if (const auto* value = std::get_if<float>(&attr.value))
    add("another", *value == 0.0f ? 0.5f : *value * 1.5f);
  if (const auto* value = std::get_if<bool>(&attr.value)) add("turned", !*value);
  if (const auto* value = std::get_if<std::string>(&attr.value)) add("another", *value + "x");
  if (const auto* value = std::get_if<BlockRef>(&attr.value)) add("the next", BlockRef{value->index + 1});
  const auto lists = [&](auto list, auto other) {
    using List = decltype(list);
    List longer = list;
    longer.push_back(other);
    add("one more", longer);
    if (list.empty()) return;
    List changed = list;
    changed.front() = other;
    add("first changed", changed);
    add("last dropped", List(list.begin(), list.end() - 1));
    add("turned round", List(list.rbegin(), list.rend()));
  };
  if (const auto* list = std::get_if<std::vector<std::string>>(&attr.value))
    lists(*list, std::string("other"));
  if (const auto* list = std::get_if<std::vector<std::int32_t>>(&attr.value)) lists(*list, 7);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attr.value)) lists(*list, std::int64_t{7});
  if (const auto* list = std::get_if<std::vector<BlockRef>>(&attr.value)) lists(*list, BlockRef{0});
}

void AddSlot(const Op& op, const Slot& slot, bool input, std::vector<Mutation>& out) {
  const auto add = [&](std::string how, std::vector<std::string> args) {
    if (args == slot.args) return;
    out.push_back({StrCat(op.type(), ".", slot.name, input ? " in: " : " out: ", how),
                   [name = slot.name, args, input](Op& op) {
                     input ? op.AddInput(name, args) : op.AddOutput(name, args);
                   }});
  };
  if (slot.args.empty()) return;
  const std::vector<std::string>& args = slot.args;
  add("last dropped", {args.begin(), args.end() - 1});
  add("turned round", {args.rbegin(), args.rend()});
  std::vector<std::string> doubled = args;
  doubled.push_back(args.front());
  add("first again", doubled);
  std::vector<std::string> other = args;
  other.front() = "other";
  add("first changed", other);
}

bool IsCommunication(const Op& op) {
  for (const char* type :
       {"send", "recv", "send_barrier", "fetch_barrier", "split_byref", "split_selected_rows", "split_ids",
        "merge_ids", "prefetch", "distributed_lookup_table", "listen_and_serv"}) {
    if (op.type() == type) return true;
  }
  return Has(op.role(), Role::kDist);  // the join of slices
}

// Geo's sends go to the communicator, wherever they say; ids of one table may be told in any order.
bool HarmlessForGeo(const Op& op, const std::string& what) {
  return op.type() == "send" && !Has(op.role(), Role::kRpc) &&
         (StartsWith(what, "send.epmap: ") || what == "send.X in: turned round");
}

std::vector<Mutation> MutationsOf(const Op& op) {
  std::vector<Mutation> out;
  for (const NamedAttr& attr : op.attrs()) {
    if (!IsHarmless(op.type(), attr.name)) AddAttr(op, attr, out);
  }
  for (const Slot& slot : op.inputs()) AddSlot(op, slot, true, out);
  for (const Slot& slot : op.outputs()) AddSlot(op, slot, false, out);
  return out;
}

class Survivors {
 public:
  explicit Survivors(const CaseFolder& one, std::string set)
      : source_{one.main, one.startup}, set_(std::move(set)) {}

  // The role program that is damaged is `program`, a part of `roles`.
  void Try(RoleFiles& roles, Program& program, bool all_ops) {
    std::map<std::string, int> of_type;
    for (int b = 0; b < program.block_count(); ++b) {
      const std::vector<OpEntry> entries = program.block(b).ops();
      for (const OpEntry& entry : entries) {
        if (!all_ops && !IsCommunication(*entry.op)) continue;
        if (of_type[entry.op->type()]++ >= kPerType) continue;
        TryOp(roles, program, {b, entry.id});
      }
    }
  }

  int tried() const { return tried_; }
  const std::set<std::string>& found() const { return survivors_; }

 private:
  static constexpr int kPerType = 2;  // ops of one type in one program are alike

  void Judge(const RoleFiles& roles, const std::string& what) {
    if (HarmlessChanges().contains(what)) return;
    ++tried_;
    if (CheckRoles(roles, AllOps(), {.source = &source_}).errors() == 0)
      survivors_.insert(StrCat(set_, ": ", what));
  }

  void TryOp(RoleFiles& roles, Program& program, OpAt at) {
    const Program whole = program;
    const Op op = test::OpOf(program, at);
    for (const Mutation& mutation : MutationsOf(op)) {
      if (HarmlessForGeo(op, mutation.what)) continue;
      test::Change(program, at, mutation.make);
      Judge(roles, mutation.what);
      program = whole;
    }
    test::Remove(program, at);
    Judge(roles, StrCat(op.type(), " removed"));
    program = whole;
    if (MayBeRepeated(op)) return;
    test::Repeat(program, at);
    Judge(roles, StrCat(op.type(), " repeated"));
    program = whole;
  }

  SourcePrograms source_;
  std::string set_;
  int tried_ = 0;
  std::set<std::string> survivors_;
};

class MutationTest : public testing::TestWithParam<std::string> {};

TEST_P(MutationTest, IsFoundOrHarmless) {
  const std::string corpus = test::CorpusOrSelection();
  const auto ids = test::CaseIds(corpus);
  if (std::find(ids.begin(), ids.end(), GetParam()) == ids.end()) GTEST_SKIP() << "not in this corpus";
  const CaseFolder one = test::ReadCaseFolder(corpus, GetParam());
  const std::map<std::string, std::optional<RoleFiles>> sets = {
      {"Fluid's", test::FluidSet(one)},
      {"ours", test::OurSet(one, Dialect::kDefault)},
  };
  for (const auto& [name, set] : sets) {
    if (!set) continue;
    RoleFiles roles = *set;
    Survivors survivors(one, name);
    survivors.Try(roles, roles.trainers.back().program, false);
    if (!roles.trainer_startups.empty()) survivors.Try(roles, roles.trainer_startups.back().program, false);
    survivors.Try(roles, roles.pservers.back().program, true);
    if (!roles.pserver_startups.empty()) survivors.Try(roles, roles.pserver_startups.back().program, true);
    EXPECT_TRUE(survivors.found().empty()) << "not found:\n" << Join(survivors.found(), "\n");
    std::cout << GetParam() << ", " << name << ": " << survivors.tried() << " changes\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, MutationTest,
                         testing::Values("wide_linear.sgd@sync_p2t2", "wide_linear.adam@sync_p2t2",
                                         "vgg11.momentum.reg_l2@sync_p2t2",
                                         "softmax_reg.adam.lr_exponential@sync_mbs1024_p3t2",
                                         "resnet_small.momentum.lr_piecewise.reg_l2@sync_p2t2",
                                         "ctr_sparse.sgd@sync_p2t2", "ctr_dist.sgd@tbl_sync_p2t2",
                                         "wide_linear.sgd@async_rt_p2t2", "wide_linear.sgd@cna_rt_p2t2",
                                         "word2vec_sparse.sgd@geo_p2t2"),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

}  // namespace
}  // namespace penstock
