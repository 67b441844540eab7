#include "executor/collective/rendezvous/contract.h"

#include <algorithm>
#include <set>
#include <utility>

#include "framework/base/hash.h"
#include "framework/roles/collective_views.h"
#include "framework/roles/views.h"
#include "framework/text/job_facts.h"
#include "framework/text/printer.h"

namespace penstock::rendezvous {
namespace {

// Attributes that may differ between ranks that run the same program.
constexpr std::string_view kOfOneRank[] = {"rank",
                                           "trainer_id",
                                           "endpoint",
                                           "other_endpoints",
                                           "seed",
                                           "startup_seed",
                                           "forward_callable_id",
                                           "backward_callable_id",
                                           kCallstackAttr,
                                           kNameScopeAttr,
                                           kDeviceAttr};

// Maps the names of sent variables, which contain the sender, to names common to all ranks.
using SentNames = std::map<std::string, std::string, std::less<>>;

SentNames SentIn(const Program& program) {
  SentNames sent;
  for (const OpEntry& entry : program.main().ops()) {
    if (roles::CommOf(*entry.op) != roles::Comm::kSend) continue;
    for (const std::string& name : roles::SendView(*entry.op).variables())
      sent.emplace(name, StrCat("@SENT@", sent.size()));
  }
  return sent;
}

void Rename(const SentNames& sent, std::vector<std::string>& names) {
  for (std::string& name : names) {
    if (const auto common = sent.find(name); common != sent.end()) name = common->second;
  }
}

Op WithCommonNames(Op op, const SentNames& sent) {
  if (sent.empty()) return op;
  const auto common = [&](const Slot& slot) {
    std::vector<std::string> names(slot.args.begin(), slot.args.end());
    Rename(sent, names);
    return ArgList(std::move(names));
  };
  for (const Slot& slot : std::vector<Slot>(op.inputs())) op.AddInput(slot.name, common(slot));
  for (const Slot& slot : std::vector<Slot>(op.outputs())) op.AddOutput(slot.name, common(slot));
  for (const NamedAttr& attr : std::vector<NamedAttr>(op.attrs())) {
    const auto* texts = std::get_if<std::vector<std::string>>(&attr.value);
    if (texts == nullptr) continue;
    std::vector<std::string> renamed = *texts;
    Rename(sent, renamed);
    op.Set(attr.name, std::move(renamed));
  }
  return op;
}

std::string OpLine(const Op& op, const SentNames& sent) {
  Op common = WithCommonNames(op, sent);
  for (const std::string_view attr : kOfOneRank) common.RemoveAttr(attr);
  return StrCat(op.type(), " ", Fnv1a64(PrintOp(common, {.defaults = true})));
}

class ContractReader {
 public:
  ContractReader(const Program& program, CollectiveContract& out)
      : program_(program), sent_(SentIn(program)), out_(out) {}

  void Read(int block) {
    for (const OpEntry& entry : program_.block(block).ops()) {
      const Op& op = *entry.op;
      out_.ops.push_back(OpLine(op, sent_));
      if (roles::CollectiveView(op).kind() != roles::CollectiveKind::kNone) Add(block, op);
      if (!op.location().empty()) {
        for (const std::string& name : op.OutputNames()) written_at_[name] = op.location();
      }
      for (const NamedAttr& attr : op.attrs()) {
        const auto* inner = std::get_if<BlockRef>(&attr.value);
        if (inner != nullptr && inner->index > block && inner->index < program_.block_count())
          Read(inner->index);
      }
    }
  }

 private:
  void Add(int block, const Op& op) {
    const roles::CollectiveView view(op);
    CollectiveCall call{.op = op.type(), .variable = view.variable(), .root = view.root()};
    if (const Var* var = program_.FindVar(block, view.variable())) call.type = PrintVarType(*var);
    const auto written = written_at_.find(view.variable());
    call.where = !op.location().empty() || written == written_at_.end() ? op.location() : written->second;
    out_.rings[view.ring()].push_back(std::move(call));
  }

  const Program& program_;
  const SentNames sent_;
  CollectiveContract& out_;
  std::map<std::string, std::string, std::less<>> written_at_;
};

// Appends a text behind its size ("3:abc"), or a number as such a text.
void Put(std::string& out, std::string_view text) { out += StrCat(text.size(), ":", text); }
void Put(std::string& out, std::size_t number) { Put(out, StrCat(number)); }

class Taker {
 public:
  explicit Taker(std::string_view bytes) : bytes_(bytes) {}
  std::string_view Text() {
    const std::size_t colon = bytes_.substr(0, kDigitsMax + 1).find(':');
    const std::optional<std::size_t> size =
        colon == std::string_view::npos ? std::nullopt : ToNumber(bytes_.substr(0, colon));
    if (!size || *size > bytes_.size() - colon - 1) return Fail();
    const std::string_view text = bytes_.substr(colon + 1, *size);
    bytes_.remove_prefix(colon + 1 + *size);
    return text;
  }
  // Reads a number, at most `most`. Count reads a number of entries: each takes a byte or more, so there are
  // at most as many as bytes are left.
  std::size_t Number(std::size_t most) {
    const std::optional<std::size_t> number = ToNumber(Text());
    if (number && *number <= most) return *number;
    Fail();
    return 0;
  }
  std::size_t Count() { return Number(bytes_.size()); }
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  static constexpr std::size_t kDigitsMax = 10;
  static std::optional<std::size_t> ToNumber(std::string_view digits) {
    if (digits.empty() || digits.size() > kDigitsMax) return std::nullopt;
    std::size_t number = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9') return std::nullopt;
      number = number * 10 + static_cast<std::size_t>(c - '0');
    }
    return number;
  }
  std::string_view Fail() {
    ok_ = false;
    bytes_ = {};
    return {};
  }

  std::string_view bytes_;
  bool ok_ = true;
};

std::string Write(const CollectiveContract& contract, bool rings, bool ops, bool where) {
  std::string out;
  Put(out, static_cast<std::size_t>(contract.ranks));
  Put(out, contract.job_facts);
  Put(out, rings ? contract.rings.size() : 0);
  for (const auto& [ring, calls] : contract.rings) {
    if (!rings) break;
    Put(out, static_cast<std::size_t>(ring));
    Put(out, calls.size());
    for (const CollectiveCall& call : calls) {
      Put(out, call.op);
      Put(out, call.variable);
      Put(out, call.type);
      Put(out, static_cast<std::size_t>(call.root));
      Put(out, where ? call.where : std::string());
    }
  }
  Put(out, ops ? contract.ops.size() : 0);
  for (const std::string& op : contract.ops) {
    if (ops) Put(out, op);
  }
  return out;
}

// Replaces control characters in a peer's text, which a terminal might interpret.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

std::string RingName(const CollectiveContract& contract, int ring) {
  return contract.rings.size() > 1 ? StrCat(" of ring ", ring) : std::string();
}

std::optional<std::string> RingDifference(const CollectiveContract& rank0, int rank,
                                          const CollectiveContract& other, int ring) {
  static const std::vector<CollectiveCall> kNone;
  const auto calls = [ring](const CollectiveContract& contract) -> const std::vector<CollectiveCall>& {
    const auto at = contract.rings.find(ring);
    return at == contract.rings.end() ? kNone : at->second;
  };
  const std::vector<CollectiveCall>&ours = calls(rank0), &theirs = calls(other);
  const std::string of_ring = RingName(rank0.rings.size() > other.rings.size() ? rank0 : other, ring);
  for (std::size_t i = 0; i < std::max(ours.size(), theirs.size()); ++i) {
    if (i == ours.size() || i == theirs.size()) {
      const bool more = i == ours.size();  // rank 0 ends first
      return StrCat("rank ", rank, " has ", theirs.size(), " collectives", of_ring, ", rank 0 has ",
                    ours.size(), "; the first that ", more ? "rank 0 lacks" : StrCat("rank ", rank, " lacks"),
                    " is ", more ? theirs[i] : ours[i]);
    }
    if (!ours[i].SameAs(theirs[i])) {
      return StrCat("rank ", rank, "'s collective ", i, of_ring, " is ", theirs[i], ", rank 0's is ",
                    ours[i]);
    }
  }
  return std::nullopt;
}

std::optional<std::string> OpDifference(const CollectiveContract& rank0, int rank,
                                        const CollectiveContract& other) {
  const auto [ours, theirs] =
      std::mismatch(rank0.ops.begin(), rank0.ops.end(), other.ops.begin(), other.ops.end());
  if (ours == rank0.ops.end() && theirs == other.ops.end()) return std::nullopt;
  const auto told = [](const auto& contract, auto at) {
    return at == contract.ops.end() ? std::string("missing") : at->substr(0, at->find(' '));
  };
  const std::string here = told(rank0, ours), there = told(other, theirs);
  const auto number = ours - rank0.ops.begin();
  if (here != there) return StrCat("rank ", rank, "'s op ", number, " is ", there, ", rank 0's is ", here);
  return StrCat("rank ", rank, "'s op ", number, ", ", there,
                ", has other variables or attributes than rank 0's");
}

}  // namespace

std::string CollectiveCall::ToString() const {
  const bool from_root = op == "c_broadcast" || op == "broadcast";
  return StrCat(op, " of ", variable, type.empty() ? "" : " ", type,
                from_root ? StrCat(" from rank ", root) : std::string(),
                where.empty() ? std::string() : StrCat(" (", where, ")"));
}

CollectiveContract ContractOf(const Program& program, int ranks) {
  CollectiveContract contract{
      .ranks = ranks, .rings = {}, .job_facts = JobFactsOfAllRanks(program.meta().job_facts), .ops = {}};
  ContractReader(program, contract).Read(0);
  return contract;
}

std::uint64_t DigestOf(const CollectiveContract& contract) {
  return Fnv1a64(Write(contract, true, true, false));
}

std::string WriteContract(const CollectiveContract& contract) {
  std::string bytes = Write(contract, true, true, true);
  if (bytes.size() > kValueBytesMax) bytes = Write(contract, true, false, true);
  if (bytes.size() > kValueBytesMax) bytes = Write(contract, false, false, true);
  return bytes;
}

Result<CollectiveContract> ReadContract(std::string_view bytes) {
  Taker from(bytes);
  CollectiveContract contract;
  contract.ranks = static_cast<int>(from.Number(INT32_MAX));
  contract.job_facts = from.Text();
  for (std::size_t rings = from.Count(); rings > 0 && from.ok(); --rings) {
    std::vector<CollectiveCall>& calls = contract.rings[static_cast<int>(from.Number(INT32_MAX))];
    for (std::size_t count = from.Count(); count > 0 && from.ok(); --count) {
      CollectiveCall& call = calls.emplace_back();
      call.op = from.Text();
      call.variable = from.Text();
      call.type = from.Text();
      call.root = static_cast<int>(from.Number(INT32_MAX));
      call.where = from.Text();
    }
  }
  for (std::size_t count = from.Count(); count > 0 && from.ok(); --count)
    contract.ops.emplace_back(from.Text());
  if (!from.ok() || !from.at_end())
    return DataLoss("E-rendezvous-message", "a contract of a rank has no valid form");
  return contract;
}

std::optional<std::string> ContractDifference(const CollectiveContract& rank0, int rank,
                                              const CollectiveContract& other) {
  if (rank0.ranks != other.ranks)
    return StrCat("rank ", rank, " is one of ", other.ranks, " ranks, rank 0 one of ", rank0.ranks);
  std::set<int> rings;
  for (const CollectiveContract* contract : {&rank0, &other}) {
    for (const auto& [ring, calls] : contract->rings) rings.insert(ring);
  }
  for (const int ring : rings) {
    if (auto difference = RingDifference(rank0, rank, other, ring)) return difference;
  }
  if (const auto facts = FirstJobDifference(other.job_facts, rank0.job_facts))
    return StrCat("rank ", rank, "'s program ", facts->here, ", rank 0's ", facts->there);
  return OpDifference(rank0, rank, other);
}

Status AgreeOnContract(Store& store, const std::string& name, const CollectiveContract& contract) {
  const std::string base = StrCat("contract/", name, "/");
  const auto digest_key = [&](int rank) { return StrCat(base, "digest/", rank); };
  const auto bytes_key = [&](int rank) { return StrCat(base, "bytes/", rank); };
  const std::string verdict_key = StrCat(base, "verdict"), digest = StrCat(DigestOf(contract));
  if (store.rank() > 0) {
    PENSTOCK_RETURN_IF_ERROR(store.Set(bytes_key(store.rank()), WriteContract(contract)));
    PENSTOCK_RETURN_IF_ERROR(store.Set(digest_key(store.rank()), digest));
    PENSTOCK_ASSIGN_OR_RETURN(const std::string verdict, store.Get(verdict_key));
    return verdict.empty() ? OkStatus() : FailedPrecondition("E-rendezvous-contract", verdict);
  }
  std::string verdict;
  for (int rank = 1; rank < store.ranks() && verdict.empty(); ++rank) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string other_digest, store.Get(digest_key(rank)));
    if (other_digest == digest) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const std::string bytes, store.Get(bytes_key(rank)));
    const Result<CollectiveContract> other = ReadContract(bytes);
    std::optional<std::string> difference;
    if (other.ok()) difference = ContractDifference(contract, rank, *other);
    verdict = OneLine(difference.value_or(StrCat("rank ", rank, " runs another program than rank 0")));
  }
  PENSTOCK_RETURN_IF_ERROR(store.Set(verdict_key, verdict));
  return verdict.empty() ? OkStatus() : FailedPrecondition("E-rendezvous-contract", verdict);
}

}  // namespace penstock::rendezvous
