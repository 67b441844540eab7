#include "transpiler/pipeline/describe_job.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "framework/base/hash.h"
#include "framework/base/strings.h"
#include "framework/text/lexer.h"
#include "framework/verify/show_options.h"
#include "transpiler/pipeline/op_digest.h"
#include "transpiler/plan/mode.h"

namespace penstock {
namespace {

constexpr std::size_t kNamesTold = 4;       // per group of variables treated alike
constexpr std::size_t kKindsTold = 24;      // groups of updates, and of initial values
constexpr std::size_t kAttrBytesTold = 32;  // a longer value is replaced by its digest
constexpr std::size_t kNameBytesTold = 64;
constexpr std::size_t kToldKept = 8;  // size of the cache of op texts

std::string Digest(std::uint64_t digest) {
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; digest >>= 4) text[i] = "0123456789abcdef"[digest & 15];
  return text;
}

std::string Count(std::size_t count, std::string_view what) {
  return StrCat(count, " ", what, count == 1 ? "" : "s");
}

// Groups names that are treated alike. Prints one line per group, for the first `kKindsTold` groups in the
// order of their names.
class Kinds {
 public:
  void Add(std::string how, const std::string& name, std::uint64_t digest = 0) {
    Kind& kind = kinds_[std::move(how)];
    kind.names.push_back(name);
    kind.digest = Chain(Chain(kind.digest, Fnv1a64(name)), digest);
  }

  // "updates b, w with sgd"
  void Print(std::string_view verb, std::string& out) const {
    std::vector<std::pair<std::string, std::string>> lines;  // by first name
    for (const auto& [how, kind] : kinds_)
      lines.emplace_back(kind.names.front(), StrCat(verb, " ", Names(kind), " with ", how, "\n"));
    std::sort(lines.begin(), lines.end());
    std::uint64_t rest = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i < kKindsTold) out += lines[i].second;
      if (i >= kKindsTold) rest = Chain(rest, Fnv1a64(lines[i].second));
    }
    if (lines.size() > kKindsTold)
      out +=
          StrCat(verb, " others in ", lines.size() - kKindsTold, " other ways, digest ", Digest(rest), "\n");
  }

 private:
  struct Kind {
    std::vector<std::string> names;  // ascending
    std::uint64_t digest = 0;
  };

  static std::string Names(const Kind& kind) {
    std::string out;
    bool all = kind.names.size() <= kNamesTold;
    for (std::size_t i = 0; i < std::min(kind.names.size(), kNamesTold); ++i) {
      const std::string name = SpellName(kind.names[i]);
      all = all && name.size() <= kNameBytesTold;
      out += StrCat(i == 0 ? "" : ", ", name.substr(0, kNameBytesTold));
    }
    if (all) return out;
    const std::size_t more = kind.names.size() - std::min(kind.names.size(), kNamesTold);
    return StrCat(out, " and ", more, " more (digest ", Digest(kind.digest), ")");
  }

  std::map<std::string, Kind> kinds_;
};

class JobWriter {
 public:
  JobWriter(const OpRegistry& ops, const Program& main, const Program& startup,
            const plan::PlacementPlan& plan)
      : main_(main),
        startup_(startup),
        plan_(plan),
        shown_(ShowOptions(ops)),
        digest_(main),
        alone_(startup) {
    FindUpdates(ops);
    FindWriters();
  }

  // Call it at most once.
  std::string Write(const std::map<std::string, std::string>& policies) {
    out_ = StrCat("works in mode ", plan::ModeName(plan_.mode));
    if (plan_.dialect == plan::Dialect::kFluid18) out_ += ", dialect fluid-1.8";
    if (plan_.staleness) out_ += StrCat(" with staleness ", *plan_.staleness);
    if (plan_.backup_trainers > 0) out_ += StrCat(" with backup_trainers ", plan_.backup_trainers);
    for (const auto& [name, value] : policies) out_ += StrCat(", ", name, " ", value);
    out_ += StrCat("\nhas random seed ", main_.meta().random_seed);
    if (startup_.meta().random_seed != main_.meta().random_seed)
      out_ += StrCat(", of the startup program ", startup_.meta().random_seed);
    out_ += "\n";
    WriteUpdates();
    WriteCompression();
    const std::string model = Model();  // numbers the variables whose initial values follow
    WriteInitialValues();
    out_ += model;
    WritePlan();
    return std::move(out_);
  }

 private:
  void FindUpdates(const OpRegistry& ops) {
    for (const OpEntry& entry : main_.main().ops()) {
      const Op& op = *entry.op;
      if (!Has(op.role(), OpRole::kOptimize)) continue;
      const OpDef* def = ops.Find(op.type());
      if (def == nullptr || !def->optimizer()) continue;
      updates_.emplace(op.InputName(def->optimizer()->param_slot),
                       Update{&op, op.InputName(def->optimizer()->rate_slot)});
    }
    for (const auto& [name, update] : updates_) params_.insert(name);
    for (const VarRef& var : main_.main().vars()) {
      if (var->facts.is_parameter) params_.insert(var->name);
    }
    for (const std::string& name : params_) digest_.KeepName(name, Fnv1a64(name));
  }

  void FindWriters() {
    for (const OpEntry& entry : startup_.main().ops()) {
      for (const Slot& slot : entry.op->outputs()) {
        for (const std::string& name : slot.args) writers_[name].push_back(entry.op.get());
      }
    }
    for (const OpEntry& entry : main_.main().ops()) {
      const OpRole role = entry.op->role();
      if (!Has(role, OpRole::kLrSched)) continue;
      for (const Slot& slot : entry.op->outputs()) scheduled_.insert(slot.args.begin(), slot.args.end());
    }
  }

  static bool IsTold(const Op& op, const std::string& attr) {
    const bool own = attr == "shape" || attr == "dtype" || attr == "force_cpu" || attr == "str_value";
    return !own && !IsOfProcess(op, attr);
  }

  // "adam {beta1=0.8}": the type and the attributes that a user sets, without those that differ by variable.
  // Cached, because most ops of a type have the same text.
  const std::string& Told(const Op& op) {
    const auto differs = [](const Op& one, const Op& other) {
      return one.type() != other.type() || !SameTold(one, other);
    };
    for (auto& [known, text] : told_) {
      if (!differs(*known, op)) return text;
    }
    if (told_.size() >= kToldKept) told_.pop_front();
    return told_.emplace_back(&op, StrCat(op.type(), Attrs(op))).second;
  }

  static bool SameTold(const Op& one, const Op& other) {
    const std::vector<NamedAttr>&a = one.attrs(), &b = other.attrs();
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].name != b[i].name) return false;
      if (IsTold(one, a[i].name.str()) && a[i].value != b[i].value) return false;
    }
    return true;
  }

  std::string Attrs(const Op& op) const {
    std::map<std::string, std::string> told;
    for (const NamedAttr& attr : op.attrs()) {
      const std::string& name = attr.name.str();
      if (!IsTold(op, name) || shown_.is_default(op, attr)) continue;
      std::string value = AttrToString(attr.value);
      if (value.size() > kAttrBytesTold) value = StrCat("(digest ", Digest(Fnv1a64(value)), ")");
      told[name] = std::move(value);
    }
    std::string out;
    for (const auto& [name, value] : told) out += StrCat(out.empty() ? " {" : ", ", name, "=", value);
    return out.empty() ? out : StrCat(out, "}");
  }

  std::string Rate(const std::string& rate) const {
    if (rate.empty()) return "";
    if (scheduled_.contains(rate)) return ", learning rate by a schedule";
    const auto written = writers_.find(rate);
    const float* value = written == writers_.end() ? nullptr : written->second.back()->Get<float>("value");
    return value == nullptr ? ", learning rate from elsewhere" : StrCat(", learning rate ", *value);
  }

  void WriteUpdates() {
    Kinds kinds;
    for (const auto& [param, update] : updates_)
      kinds.Add(StrCat(Told(*update.op), Rate(update.rate)), param);
    kinds.Print("updates", out_);
  }

  void WriteCompression() {
    std::map<std::string_view, const Compression*> by_name;  // Kinds takes names in their order
    for (const plan::ParamPlacement& param : plan_.params) {
      if (!param.compression.none()) by_name.emplace(param.param, &param.compression);
    }
    Kinds kinds;
    for (const auto& [name, how] : by_name) kinds.Add(how->ToString(), std::string(name));
    kinds.Print("compresses", out_);
  }

  // Goes backwards from the last op: ops that update parameters, and ops that compute what these read.
  std::string Model() {
    const std::vector<OpEntry>& ops = main_.main().ops();
    std::size_t count = 0, in_schedule = 0;
    std::uint64_t digest = 0, schedule = 0;
    for (std::size_t i = ops.size(); i-- > 0;) {
      const Op& op = *ops[i].op;
      if (!MakesUpdates(op)) continue;
      ++count;
      const std::uint64_t one = digest_.Of(0, op);
      digest = Chain(digest, one);
      if (!Has(op.role(), OpRole::kLrSched)) continue;
      ++in_schedule;
      schedule = Chain(schedule, one);
    }
    for (const std::string& name : params_) {
      const Var* var = main_.main().FindVar(name);
      if (var != nullptr && var->HasShape() && IsMentioned(name))
        digest = Chain(digest, Fnv1a64(StrCat(name, DTypeName(var->type->dtype), var->shape())));
    }
    std::string out;
    if (in_schedule > 0)
      out = StrCat("schedules the learning rate by ", Count(in_schedule, "op"), ", digest ", Digest(schedule),
                   "\n");
    return StrCat(out, "trains by ", Count(count, "op"), ", digest ", Digest(digest), "\n");
  }

  bool IsMentioned(const std::string& name) const {
    const auto known = digest_.known().find(name);
    return known != digest_.known().end() && known->second.mentioned;
  }

  bool MakesUpdates(const Op& op) const {
    if (Has(op.role(), OpRole::kOptimize) || Has(op.role(), OpRole::kLrSched)) return true;
    return std::any_of(op.outputs().begin(), op.outputs().end(), [&](const Slot& slot) {
      return std::any_of(slot.args.begin(), slot.args.end(),
                         [&](const std::string& name) { return digest_.Knows(name); });
    });
  }

  // Whether the variable has one writer, which reads nothing and writes nothing else.
  static bool IsAlone(const std::vector<const Op*>& writers) {
    if (writers.size() != 1) return false;
    const auto args = [](const std::vector<Slot>& slots) {
      std::size_t count = 0;
      for (const Slot& slot : slots) count += slot.args.size();
      return count;
    };
    return args(writers.front()->inputs()) == 0 && args(writers.front()->outputs()) == 1;
  }

  // The digest of the startup program's ops that make a variable, and of those that make what they read.
  std::uint64_t InitialValue(const std::string& name) {
    const auto own = writers_.find(name);
    if (own != writers_.end() && IsAlone(own->second)) return alone_.OfAttrs(0, *own->second.front());
    OpDigest digest(startup_);
    digest.KeepName(name, 1);
    std::uint64_t value = 0;
    std::set<const Op*> seen;
    std::vector<std::string_view> wanted = {name};
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const auto found = writers_.find(wanted[i]);
      if (found == writers_.end()) continue;
      for (const Op* op : found->second) {
        if (!seen.insert(op).second) continue;
        value = Chain(value, digest.Of(0, *op));
        for (const Slot& slot : op->inputs()) wanted.insert(wanted.end(), slot.args.begin(), slot.args.end());
      }
    }
    return value;
  }

  void WriteInitialValues() {
    Kinds kinds;
    for (const std::string& name : params_) {
      const auto found = writers_.find(name);
      if (found == writers_.end() || !IsMentioned(name)) continue;
      const Op& op = *found->second.back();
      const std::uint64_t value = InitialValue(name);
      // The text of an initializer that fills a shape is complete; any other also gets a digest.
      kinds.Add(IsAlone(found->second) ? Told(op) : StrCat(Told(op), ", digest ", Digest(value)), name,
                value);
    }
    kinds.Print("starts", out_);
    std::size_t others = 0;
    std::uint64_t digest = 0;
    for (const auto& [name, known] : digest_.known()) {
      const Var* var = startup_.main().FindVar(name);
      const bool tensor = var != nullptr && var->kind == VarKind::kTensor;  // not a data reader
      if (!tensor || params_.contains(std::string(name)) || !writers_.contains(name)) continue;
      ++others;
      digest = Chain(Chain(digest, known.number), InitialValue(std::string(name)));
    }
    if (others > 0)
      out_ += StrCat("starts ", Count(others, "other variable"), ", digest ", Digest(digest), "\n");
  }

  void WritePlan() {
    out_ += StrCat("follows the plan of ", Count(static_cast<std::size_t>(plan_.trainers), "trainer"));
    if (!plan_.pservers.empty()) out_ += StrCat(" and ", Count(plan_.pservers.size(), "pserver"));
    out_ += StrCat(", digest ", Digest(plan::Fingerprint(plan_)), "\n");
  }

  struct Update {
    const Op* op;
    std::string rate;
  };

  const Program& main_;
  const Program& startup_;
  const plan::PlacementPlan& plan_;
  const PrintOptions shown_;
  OpDigest digest_;
  OpDigest alone_;  // for ops of the startup program that name one variable
  std::deque<std::pair<const Op*, std::string>> told_;
  std::map<std::string, Update> updates_;  // by parameter
  std::set<std::string> params_;
  ViewMap<std::vector<const Op*>> writers_;  // in the startup program
  ViewSet scheduled_;
  std::string out_;
};

}  // namespace

std::string DescribeJob(const OpRegistry& ops, const Program& main, const Program& startup,
                        const plan::PlacementPlan& plan, const std::map<std::string, std::string>& policies) {
  return JobWriter(ops, main, startup, plan).Write(policies);
}

}  // namespace penstock
