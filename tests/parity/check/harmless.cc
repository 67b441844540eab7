#include "tests/parity/check/harmless.h"

#include <algorithm>
#include <string_view>

#include "framework/base/strings.h"

namespace penstock::test {
namespace {

struct Harmless {
  std::string_view edit;  // * stands for any text
  std::string_view reason;
  std::string_view set = "*";  // of which cases, and Fluid's or ours
};
// Our sets contain the plan, which has the number of trainers.
constexpr std::string_view kFluids = "*, Fluid's";
constexpr std::string_view kGeo = "*@geo_*", kLocalSgd = "*@coll_localsgd_*";

// Ranks are trainers of a set without pservers.
constexpr Harmless kHarmless[] = {
    {"*.op_namescope: *", "tells people where an op comes from"},
    {"*.op_callstack: *", "tells people where an op was made"},
    {"*.op_device: *", "where it runs, not what it does"},
    {"*.force_cpu: *", "where it runs, not what it does"},
    {"*.op_role: *", "roles are read before a program is distributed"},
    {"*.op_role_var: last like the first",
     "of an update on a pserver, Fluid names another trainer's gradient"},
    {"*.use_mkldnn: *", "another kernel for the same values"},
    {"*.use_quantizer: *", "another kernel for the same values"},
    {"*.?_data_format: *", "another kernel for the same values"},
    {"*.use_calc_stream: *", "on the stream of the computation nothing has to be waited for"},
    {"*sum.X in: turned round", "sums are the same in any order"},
    {"*elementwise_add.X and Y in: exchanged", "sums are the same in any order"},
    {"*elementwise_mul.X and Y in: exchanged", "products are the same in any order"},
    // Declarations.
    {"* (in no op): *", "no op reads or writes it"},
    {"*: one level more", "levels travel with values"},
    {"* variable (*: persistable turned", "what lasts longer than it is needed does no harm"},
    {"* variable (*: another kind", "a temporary takes the kind of what is written; controls have no value"},
    {"pserver: persistable (*Grad, *: persistable turned", "a gradient is made anew in each step"},
    {"pserver: persistable (in of sgd.Grad): persistable turned", "so are rows that arrive"},
    {"pserver: persistable (*.?, out of *: persistable turned",
     "what the schedule computes is made anew in each step"},
    {"pserver: persistable (*LearningRate, out of *: persistable turned", "so is a rate that it computes"},
    {"pserver: persistable (*in of listen_and_serv.X*: persistable turned",
     "what arrives comes again in each step"},
    {"*persistable (in of c_comm_init.X*: persistable turned", "an id is used in the startup that makes it"},
    {"pserver: variable (in of ref_by_trainer_id.TrainerId): one extent more", "one number is one number"},
    {"pserver: variable (out of lookup_sparse_table.Out): one row more", "as many rows as ids are asked for"},
    {"rank: persistable (*assign.*: another element type", "Fluid leaves the types of local training open",
     kLocalSgd},
    {"rank: persistable (*assign.*: persistable turned", "Fluid's local training declares parameters anew",
     kLocalSgd},
    {"pserver: persistable (*: another kind", "a value that a block makes takes the kind of what is written"},
    // Trainers.
    {"*trainer*: send.trainer_id: *", "Fluid says 0 whoever sends; the trainer's own number is right too"},
    {"trainer: prefetch.trainer_id: *", "Fluid says 0 whoever asks; the trainer's own number is right too"},
    {"trainer: recv.do_not_run: *", "a communicator sets it, to receive by itself"},
    {"*_barrier.endpoints: turned round", "pservers are told in any order"},
    {"*_barrier.X in: *", "to wait for the same thing twice, or in another order, is to wait for it"},
    {"trainer: recv.X in: first again", "to wait for the same thing twice is to wait for it"},
    {"trainer: fetch_barrier.Out out: turned round", "what is complete is named in any order"},
    {"*start: fetch_barrier.Out out: last another of its type", "the startup program ends there"},
    {"*trainer*: send.Out out: last another of its type", "a control variable that nobody else writes"},
    {"trainer's start: recv removed", "Fluid fetches no tables: a warning", "ctr_sparse.sgd@geo_*"},
    {"trainer: send_barrier removed", "without it, a communicator's rounds are those of another mode",
     "*@cna_*"},
    {"*: send.epmap: *", "geo: where the communicator is told has no address", kGeo},
    {"trainer: send.X in: turned round", "geo: tables of one element type are told of in any order", kGeo},
    {"*: lookup_table*.epmap: *", "of a table that lies here nobody asks"},
    {"*: lookup_table*.height_sections: *", "of a table that lies here nobody asks"},
    {"*: lookup_table*.table_names: *", "of a table that lies here nobody asks"},
    {"*: lookup_table*.trainer_id: *", "of a table that lies here nobody asks"},
    {"*: lookup_table*.remote_prefetch: *", "without addresses it looks up in the trainer's own table"},
    {"*: lookup_table*.is_distributed: *", "is read before a program is distributed"},
    {"*: lookup_table*.grad_inplace: *", "no kernel reads it"},
    {"*: lookup_table.is_sparse: *", "the gradient op's own says which kind it makes"},
    {"trainer: assign*",
     "Fluid keeps blocks of a schedule that has gone to the pservers; nobody enters them"},
    {"trainer: block: parent one behind",
     "Fluid keeps blocks of a schedule that has gone; nobody enters them"},
    {"trainer: variable (in of assign.X): removed", "Fluid keeps blocks of a schedule that has gone"},
    // Trainers with pservers get their initial values from there.
    {"trainer's start: uniform_random*", "the pserver's value overwrites it"},
    {"trainer's start: gaussian_random*", "the pserver's value overwrites it"},
    {"trainer's start: fill_constant*", "the pserver's value overwrites it, or nobody reads it"},
    {"trainer's start: fake_init.shape: *", "nothing is made"},
    {"*trainer's start: persistable (out of fake_init.Out): one * more", "nothing is made"},
    {"*start: persistable (out of fill_constant.Out): *",
     "nobody reads it: the step counter of a schedule that has gone"},
    // Pservers.
    {"pserver: listen_and_serv.Fanin: plus one",
     "absent trainers are taken to be like those present, with a note", kFluids},
    {"pserver: listen_and_serv.Fanin: minus one", "where gradients are not merged, a job of one trainer",
     "*async_*, Fluid's"},
    {"pserver: listen_and_serv.Fanin: removed", "where gradients are not merged, a job of one trainer",
     "*async_*, Fluid's"},
    {"pserver: listen_and_serv.pserver_id: minus one", "all are numbered or none is", "*p1t*"},
    {"pserver: listen_and_serv.sparse_grad_to_param: turned round", "a map has no order"},
    {"pserver: scale removed", "Fluid adds a table's gradients: a warning", "simnet_*@tbl_sync_*"},
    {"pserver: scale*", "with one trainer the mean is its gradient, and Fluid's tables have none",
     "*@tbl_sync_p1t1*"},
    {"pserver: sgd.Grad in: last another of its type", "with one trainer the mean is its gradient",
     "*@tbl_sync_p1t1*"},
    {"pserver: listen_and_serv.X in: turned round", "gradients arrive in any order"},
    {"pserver: listen_and_serv.grad_to_block_id: turned round", "a map has no order"},
    {"pserver: listen_and_serv.optimize_blocks: turned round", "updates depend on none before them"},
    {"pserver: listen_and_serv.pserver_id: removed", "all are numbered or none is, as in geo"},
    {"pserver: listen_and_serv.rpc_*_thread_num: *", "how many threads answer"},
    {"pserver: lookup_sparse_table.auto_grown_table: *", "a shard may be made whole"},
    {"pserver: save*", "how a table is written is said when it is asked for"},
    {"pserver's start: fill_constant.str_value: another",
     "the counter of a schedule, which each step overwrites"},
    {"pserver: conditional_block.Scope out: *", "a scope is the op's own"},
    {"pserver: persistable (*conditional_block*",
     "Fluid declares in inner blocks again what is declared around"},
    // Ranks.
    {"rank: clip_by_norm.op_role_var: *", "ops add gradients up by their names"},
    {"rank*: c_sync_* repeated", "to wait for the same thing twice is to wait for it"},
    {"rank*: gen_nccl_id.trainers: *", "what all say alike is another job", "*@nccl2_*"},
    {"rank*: gen_nccl_id.hierarchical_allreduce_inter_nranks: *", "there is one level", "*@nccl2_*"},
    {"rank: assign moved: first", "a snapshot is made when a step ends or when the next one begins",
     kLocalSgd},
    {"rank: *.Y in: last another*", "when a step begins, a snapshot is the parameter", kLocalSgd},
};

bool Matches(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    for (std::size_t from = 0; from <= text.size(); ++from) {
      if (Matches(text.substr(from), pattern.substr(1))) return true;
    }
    return false;
  }
  return !text.empty() && (pattern.front() == '?' || pattern.front() == text.front()) &&
         Matches(text.substr(1), pattern.substr(1));
}

// Edits of distribution ops that only the source can reveal: which rows belong to which ids.
constexpr std::string_view kForTheSource[] = {"*trainer: distributed_lookup_table.Ids in: *",
                                              "*trainer: distributed_lookup_table.Outputs out: *"};

// Ops that distribution adds. Only the source tells what others must compute.
constexpr std::string_view kWiring[] = {
    "send",        "recv",        "send_barrier",  "fetch_barrier",
    "split_byref", "prefetch",    "gen_nccl_id",   "split_selected_rows",
    "split_ids",   "c_allreduce", "c_gen_nccl_id", "distributed_lookup_table",
    "c_broadcast", "c_comm_init", "c_sync",        "listen_and_serv"};

}  // namespace

bool CannotMatter(const std::string& set, const std::string& what, bool with_source) {
  constexpr std::string_view kEvery = "every ";
  std::string_view edit = what;
  if (edit.starts_with(kEvery)) edit.remove_prefix(kEvery.size());
  const bool harmless = std::any_of(std::begin(kHarmless), std::end(kHarmless), [&](const Harmless& known) {
    return Matches(edit, known.edit) && Matches(set, known.set);
  });
  if (!harmless && with_source) {
    if (std::any_of(std::begin(kForTheSource), std::end(kForTheSource),
                    [&](std::string_view known) { return Matches(edit, known); }))
      return true;
    const std::string_view op = edit.substr(edit.find(": ") + 2);
    return std::none_of(std::begin(kWiring), std::end(kWiring),
                        [&](std::string_view type) { return op.starts_with(type); });
  }
  return harmless;
}

}  // namespace penstock::test
