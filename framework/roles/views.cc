#include "framework/roles/views.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "framework/ir/program.h"
#include "framework/roles/attr_names.h"

namespace penstock::roles {
namespace {

Names TextsOf(const Op& op, std::string_view attr) {
  const auto* texts = op.Get<std::vector<std::string>>(attr);
  return texts == nullptr ? Names() : Names(*texts);
}

Numbers NumbersOf(const Op& op, std::string_view attr) { return Numbers(op.FindAttr(attr)); }

const std::string& TextOf(const Op& op, std::string_view attr) {
  static const std::string kNone;
  const auto* text = op.Get<std::string>(attr);
  return text == nullptr ? kNone : *text;
}

Status CheckAddresses(const Op& op, std::size_t variables, std::size_t remote, std::size_t addresses) {
  if (addresses == variables && remote == variables) return OkStatus();
  return InvalidArgument("E-contract-epmap", op.type(), " has ", variables, " variables and ", addresses,
                         " addresses in epmap");
}

constexpr std::array<std::pair<std::string_view, Comm>, 14> kTypes = {{
    {"send", Comm::kSend},
    {"recv", Comm::kRecv},
    {"send_barrier", Comm::kSendBarrier},
    {"fetch_barrier", Comm::kFetchBarrier},
    {"split_byref", Comm::kSplit},
    {"split_selected_rows", Comm::kSplit},
    {"split_ids", Comm::kSplit},
    {"distributed_lookup_table", Comm::kLookup},
    {"prefetch", Comm::kPrefetch},
    {"merge_ids", Comm::kMergeIds},
    {"checkpoint_notify", Comm::kSave},
    {"listen_and_serv", Comm::kServe},
    {"exchange_sums", Comm::kExchange},
    {"nce", Comm::kSampler},
}};

}  // namespace

Numbers::Numbers(const Attr* attr) {
  if (attr == nullptr) return;
  if (const auto* ints = std::get_if<std::vector<std::int32_t>>(attr)) ints_ = *ints;
  if (const auto* longs = std::get_if<std::vector<std::int64_t>>(attr)) longs_ = *longs;
}

Numbers::operator std::vector<std::int64_t>() const {
  std::vector<std::int64_t> out(longs_.begin(), longs_.end());
  out.insert(out.end(), ints_.begin(), ints_.end());
  return out;
}

Comm CommOf(const Op& op) {
  const std::string_view type = op.type() == "nce_grad" ? std::string_view("nce") : op.type();
  const auto* const known =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& entry) { return entry.first == type; });
  if (known == kTypes.end()) return Comm::kNone;
  return known->second == Comm::kSampler && !PrefetchesRows(op) ? Comm::kNone : known->second;
}

ParamPair PairOf(const Op& op) {
  const Names pairs = TextsOf(op, kRoleVarAttr);
  return pairs.size() < 2 ? ParamPair() : ParamPair{pairs[0], pairs[1]};
}

bool PrefetchesRows(const Op& op) { return op.GetOr<bool>(attr::kRemotePrefetch, false); }

std::optional<int> TrainerOf(const Op& op) {
  const auto* id = op.Get<std::int32_t>(attr::kTrainerId);
  return id == nullptr ? std::nullopt : std::optional<int>(*id);
}

bool NamesServers(const Op& op) {
  return op.FindAttr(attr::kEpmap) != nullptr || op.FindAttr(attr::kEndpoints) != nullptr;
}

Names SendView::addresses() const { return TextsOf(op_, attr::kEpmap); }
Names SendView::messages() const { return TextsOf(op_, attr::kSendVarnames); }
Numbers SendView::sections() const { return NumbersOf(op_, attr::kSections); }
bool SendView::adds() const { return op_.GetOr<bool>(attr::kMergeAdd, false); }
bool SendView::counts_step() const { return !op_.GetOr<bool>(attr::kUseSendHandler, true); }
bool SendView::tells_communicator() const {
  const bool for_nothing = TextsOf(op_, kRoleVarAttr).size() < 2 && sections().empty();
  return !counts_step() && for_nothing && (variables().empty() || by_communicator());
}
Status SendView::Validate() const {
  return CheckAddresses(op_, variables().size(), variables().size(), addresses().size());
}

Names RecvView::addresses() const { return TextsOf(op_, attr::kEpmap); }
Names RecvView::renamed() const { return TextsOf(op_, attr::kVarnames); }
Names RecvView::messages() const { return TextsOf(op_, attr::kRecvVarnames); }
bool RecvView::idle() const { return op_.GetOr<std::int32_t>(attr::kDoNotRun, 0) > 0; }
bool RecvView::next_version() const {
  return op_.type() == "recv" && op_.GetOr<bool>(attr::kNextVersion, false);
}
void RecvView::AskForNext(Op& recv) { recv.Set(attr::kNextVersion, true); }
Status RecvView::Validate() const {
  return CheckAddresses(op_, variables().size(), remote().size(), addresses().size());
}

Names BarrierView::addresses() const { return TextsOf(op_, attr::kEndpoints); }
bool BarrierView::half_async() const { return op_.GetOr<bool>(attr::kHalfAsync, false); }
bool BarrierView::leaves_pulls() const {
  return op_.type() == "fetch_barrier" && op_.GetOr<bool>(attr::kLeavesPulls, false);
}
void BarrierView::LeavePulls(Op& fetch_barrier) { fetch_barrier.Set(attr::kLeavesPulls, true); }

LookupView::LookupView(const Op& op) : op_(op) {
  const bool lookup = op.type() == "distributed_lookup_table";
  table_slot_ = lookup ? "W" : "Weight";
  addresses_attr_ = lookup ? attr::kEndpoints : attr::kEpmap;
}
Names LookupView::pieces() const { return TextsOf(op_, attr::kTableNames); }
Numbers LookupView::heights() const { return NumbersOf(op_, attr::kHeightSections); }
Names LookupView::addresses() const { return TextsOf(op_, addresses_attr_); }
std::int64_t LookupView::padding() const { return op_.GetOr<std::int64_t>("padding_idx", -1); }
std::string_view LookupView::version() const { return TextOf(op_, attr::kLookupVersion); }
Status LookupView::Validate() const {
  if (pieces().size() == heights().size() && pieces().size() == addresses().size()) return OkStatus();
  return InvalidArgument("E-contract-epmap", op_.type(), " names ", pieces().size(), " slices, ",
                         heights().size(), " heights and ", addresses().size(), " addresses");
}

Names PrefetchView::addresses() const { return TextsOf(op_, attr::kEpmap); }
Status PrefetchView::Validate() const {
  if (ids().size() == addresses().size() && ids().size() == rows().size()) return OkStatus();
  return InvalidArgument("E-contract-epmap", op_.type(), " has ", ids().size(), " variables of ids, ",
                         rows().size(), " of rows and ", addresses().size(), " addresses in epmap");
}

std::int64_t AnswerView::padding() const { return op_.GetOr<std::int64_t>("padding_idx", -1); }

Numbers SplitView::sections() const {
  const Numbers heights = NumbersOf(op_, attr::kHeightSections);
  return op_.FindAttr(attr::kHeightSections) != nullptr ? heights : NumbersOf(op_, attr::kSections);
}

Names SaveView::addresses() const { return TextsOf(op_, attr::kEpmap); }

Names ExchangeView::owners() const { return TextsOf(op_, attr::kEpmap); }
Names ExchangeView::peers() const { return TextsOf(op_, attr::kEndpoints); }

const std::string& ServeView::address() const { return TextOf(op_, attr::kEndpoint); }
int ServeView::trainers() const { return op_.GetOr<std::int32_t>(attr::kFanin, 1); }
ServeMode ServeView::mode() const {
  return static_cast<ServeMode>(op_.GetOr<std::int32_t>(attr::kDistributedMode, 0));
}
std::optional<int> ServeView::number() const {
  const auto* number = op_.Get<std::int32_t>(attr::kPserverId);
  return number == nullptr ? std::nullopt : std::optional<int>(*number);
}
std::span<const BlockRef> ServeView::blocks() const {
  const auto* blocks = op_.Get<std::vector<BlockRef>>(attr::kOptimizeBlocks);
  return blocks == nullptr ? std::span<const BlockRef>() : *blocks;
}
int ServeView::lr_block() const { return op_.GetOr<std::int32_t>(attr::kLrBlock, -1); }
int ServeView::save_block() const { return op_.GetOr<std::int32_t>(attr::kSaveBlock, -1); }
Names ServeView::gradient_blocks() const { return TextsOf(op_, attr::kGradToBlockId); }
Names ServeView::lookup_blocks() const { return TextsOf(op_, attr::kPrefetchBlocks); }
Names ServeView::sparse_params() const { return TextsOf(op_, attr::kSparseGradToParam); }
Names ServeView::start_values() const { return TextsOf(op_, attr::kStartValues); }
bool ServeView::keeps_backups() const { return op_.GetOr<bool>(attr::kDcAsgd, false); }
int ServeView::threads(std::string_view attr) const { return op_.GetOr<std::int32_t>(attr, 1); }

const Op* FindServe(const Block& main) {
  const Op* serve = nullptr;
  for (const OpEntry& entry : main.ops()) {
    if (CommOf(*entry.op) == Comm::kServe) serve = entry.op.get();
  }
  return serve;
}

std::optional<NamedBlock> ParseNamedBlock(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  NamedBlock named{.name = text.substr(0, colon)};
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data() + colon + 1, end, named.block);
  if (error != std::errc() || read != end) return std::nullopt;
  return named;
}

}  // namespace penstock::roles
