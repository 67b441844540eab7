#include "executor/client/key_client.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "executor/client/key_work.h"
#include "framework/base/hash.h"
#include "framework/base/strings.h"

namespace penstock::client {
namespace {

constexpr std::string_view kSplit = "E-kv-optimizer-split";

// Where part `i` of `parts` of n elements begins: rounded, halves up.
Dim PartBegin(Dim n, std::size_t i, std::size_t parts) {
  const double at = static_cast<double>(n) / static_cast<double>(parts) * static_cast<double>(i) + 0.5;
  return i == parts ? n : static_cast<Dim>(std::floor(at));
}

bool CanBeKept(DType type) {
  return type == DType::kFp16 || type == DType::kFp32 || type == DType::kFp64 || type == DType::kInt8 ||
         type == DType::kUInt8 || type == DType::kInt16 || type == DType::kInt32 || type == DType::kInt64;
}

}  // namespace

KeyClient::KeyClient(Session& session, Wait wait, KeyClientOptions options)
    : session_(session), wait_(std::move(wait)), options_(std::move(options)) {}

Status KeyClient::Attach() {
  if (options_.workers < 1 || options_.rank < 0 || options_.rank >= options_.workers) {
    return InvalidArgument("E-kv-rank", "rank is ", options_.rank, "; with ", options_.workers,
                           " workers it must be from 0 to ", options_.workers - 1);
  }
  if (options_.servers.empty()) return InvalidArgument("E-kv-servers", "no servers are given");
  PENSTOCK_RETURN_IF_ERROR(session_.AttachKeys(options_.servers, options_.rank));
  const std::lock_guard lock(mutex_);
  for (const std::string& server : options_.servers) links_.push_back(&session_.LinkTo(server));
  return OkStatus();
}

// Small keys, and asynchronous ones, of which a reader must see one version, lie whole on one server.
std::vector<KeyClient::Piece> KeyClient::PlacesOf(const KeyType& type) const {
  const std::int64_t count = type.shape.Count();
  const Dim extent = type.rows ? type.shape[0] : count;
  const bool cut = count >= options_.bound && links_.size() > 1 && (options_.sync || type.rows);
  if (!cut) return {{.link = links_[Fnv1a64(type.name) % links_.size()], .begin = 0, .end = extent}};
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const Dim begin = PartBegin(extent, i, links_.size()), end = PartBegin(extent, i + 1, links_.size());
    if (begin < end) pieces.push_back({.link = links_[i], .begin = begin, .end = end});
  }
  return pieces;
}

Result<int> KeyClient::Declare(const KeyType& type, const Tensor& value) {
  const auto refuse = [&](const char* id, const std::string& why) {
    return InvalidArgument(id, "key ", Quote(type.name), " ", why);
  };
  if (!CanBeKept(type.dtype))
    return refuse("E-kv-key-type", StrCat("is ", DTypeName(type.dtype), ", which servers do not keep"));
  if (!type.shape.IsKnown() || type.shape.Count() < 1)
    return refuse("E-kv-key-type", StrCat("has no elements: ", type.shape));
  if (type.rows && type.shape.rank() < 2)
    return refuse("E-kv-key-type", StrCat("is pushed by rows, and its shape is ", type.shape));
  const std::lock_guard lock(mutex_);
  if (names_.contains(type.name)) return refuse("E-kv-twice", "is declared a second time");
  Key key{.type = type, .stored = type.dtype == DType::kFp16 ? DType::kFp32 : type.dtype};
  if (options_.rank == 0) {
    if (!value.initialized()) return refuse("E-kv-array", "has no initial value on worker 0");
    PENSTOCK_RETURN_IF_ERROR(CheckValue(key, value, "initial value"));
    key.value = Stored(key, value);
  }
  key.pieces = PlacesOf(type);
  const bool is_small = type.rows || !options_.sync || type.shape.Count() < options_.bound;
  key.whole = is_small && key.pieces.size() == 1;
  return Add(std::move(key));
}

Result<int> KeyClient::DeclareTable(const std::string& name, DType dtype, Dim width,
                                    const std::string& spec) {
  const std::lock_guard lock(mutex_);
  if (names_.contains(name))
    return InvalidArgument("E-kv-twice", "table ", Quote(name), " is declared a second time");
  Key key{.type = {.name = name, .dtype = dtype, .shape = {1, width}, .rows = true, .table = spec},
          .stored = dtype};
  for (Link* const link : links_) key.pieces.push_back({.link = link, .begin = 0, .end = 1});
  key.whole = true;  // no optimizer of keys moves it
  return Add(std::move(key));
}

int KeyClient::Add(Key key) {
  DeclarePieces(key);
  names_.insert(key.type.name);
  keys_.push_back(std::move(key));
  return static_cast<int>(keys_.size()) - 1;
}

void KeyClient::DeclarePieces(Key& key) {
  const KeyType& type = key.type;
  for (Piece& piece : key.pieces) {
    protocol::KeyBody body{.name = type.name, .dtype = static_cast<std::uint32_t>(key.stored), .shape = {}};
    body.shape.push_back(piece.end - piece.begin);
    for (int i = 1; type.rows && i < type.shape.rank(); ++i) body.shape.push_back(type.shape[i]);
    body.rows = type.rows;
    body.turns = !options_.sync;
    body.whole = key.whole;
    body.moved = key.moved;
    body.table = type.table;
    body.begin = piece.begin;
    piece.slots = piece.link->DeclareKey(body);
  }
}

// From the pieces to one server, which gets the value from worker 0.
void KeyClient::Move(Key& key, Tensor value) {
  for (const Piece& piece : key.pieces) piece.link->LeaveKey(piece.slots.value);
  const Dim end = key.type.rows ? key.type.shape[0] : key.type.shape.Count();
  key.pieces = {{.link = links_[Fnv1a64(key.type.name) % links_.size()], .begin = 0, .end = end}};
  key.whole = true;
  key.moved = true;
  key.value = std::move(value);
  key.ready = false;
  DeclarePieces(key);
}

bool KeyClient::IsDeclared(const Key& key) const {
  return std::ranges::all_of(key.pieces,
                             [](const Piece& piece) { return piece.link->KeyIsDeclared(piece.slots.value); });
}

// The value as worker 0 has it after its pushes.
Result<Tensor> KeyClient::PullStored(int index) {
  Ticket ticket;
  {
    const std::lock_guard lock(mutex_);
    Key& key = keys_[static_cast<std::size_t>(index)];
    ticket = std::make_shared<Work>(Work::Kind::kPull, index, key.pushes);
    const Shape shape = key.type.rows ? key.type.shape : Shape({key.type.shape.Count()});
    ticket->out = ticket->stored = Tensor(key.stored, shape);
    PENSTOCK_RETURN_IF_ERROR(StartPull(key, *ticket));
    key.pulls.push_back(ticket);
  }
  PENSTOCK_RETURN_IF_ERROR(WaitFor(ticket));
  return ticket->stored;
}

Status KeyClient::MakeWhole() {
  PENSTOCK_RETURN_IF_ERROR(WaitForAll());
  PENSTOCK_RETURN_IF_ERROR(Barrier());
  for (int index = 0;; ++index) {
    Key* key = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (static_cast<std::size_t>(index) == keys_.size()) return OkStatus();
      key = &keys_[static_cast<std::size_t>(index)];
      if (key->whole || !key->status.ok()) continue;
    }
    Tensor value;
    if (options_.rank == 0) {
      PENSTOCK_ASSIGN_OR_RETURN(value, PullStored(index));
    }
    const std::lock_guard lock(mutex_);
    Move(*key, std::move(value));
  }
}

// All servers have answered: worker 0 sends the value. A process that was started again goes on where all
// servers have its pushes.
void KeyClient::Settle(Key& key) {
  if (std::exchange(key.ready, true)) return;
  std::uint64_t pushes = std::numeric_limits<std::uint64_t>::max();
  for (const Piece& piece : key.pieces) {
    if (key.status.ok()) key.status = piece.link->KeyStatus(piece.slots.value);
    pushes = std::min(pushes, piece.link->KeyPushes(piece.slots.value));
  }
  if (!key.status.ok()) return;
  key.pushes = pushes;
  NoteCheckpoint(key);
  const Tensor value = std::exchange(key.value, Tensor());
  if (!value.initialized()) return;
  for (const Piece& piece : key.pieces) {
    const Tensor part = value.Rows(piece.begin, piece.end);
    piece.link->SetKey(piece.slots.value, {part.buffer(), part.raw(), part.bytes()});
  }
}

bool KeyClient::IsReady(int index) const {
  const std::lock_guard lock(mutex_);
  return index < 0 || static_cast<std::size_t>(index) >= keys_.size() ||
         keys_[static_cast<std::size_t>(index)].ready;
}

Result<KeyClient::Key*> KeyClient::Ready(int index) {
  Key* key = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (index < 0 || static_cast<std::size_t>(index) >= keys_.size())
      return InvalidArgument("E-kv-handle", "there is no key of handle ", index);
    key = &keys_[static_cast<std::size_t>(index)];
    PENSTOCK_RETURN_IF_ERROR(key->status);
    if (key->ready) return key;
  }
  PENSTOCK_RETURN_IF_ERROR(wait_([&] { return IsDeclared(*key); }));
  bool moves = false;  // the optimizer needs the whole key
  {
    const std::lock_guard lock(mutex_);
    const auto is_refused = [](const Piece& piece) {
      return piece.link->KeyStatus(piece.slots.value).id() == kSplit;
    };
    moves = !key->ready && !key->whole && std::ranges::any_of(key->pieces, is_refused);
    if (moves) Move(*key, std::exchange(key->value, Tensor()));
  }
  if (moves) PENSTOCK_RETURN_IF_ERROR(wait_([&] { return IsDeclared(*key); }));
  const std::lock_guard lock(mutex_);
  Settle(*key);
  PENSTOCK_RETURN_IF_ERROR(key->status);
  return key;
}

// All workers get the same answers, so all of them move the keys.
Status KeyClient::SetOptimizer(const std::string& text, bool keeps_state) {
  Status status = TrySetOptimizer(text, keeps_state);
  if (status.id() != kSplit) return status;
  PENSTOCK_RETURN_IF_ERROR(MakeWhole());
  return TrySetOptimizer(text, keeps_state);
}

Status KeyClient::TrySetOptimizer(const std::string& text, bool keeps_state) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(session_.status());
    number = ++optimizers_;
    for (Link* link : links_) link->SetOptimizer(number, text, keeps_state);
    if (!keeps_state) BeginCounts();
  }
  PENSTOCK_RETURN_IF_ERROR(wait_([&] {
    return std::ranges::all_of(links_,
                               [&](const Link* link) { return link->OptimizerStatus(number).has_value(); });
  }));
  for (const Link* link : links_) PENSTOCK_RETURN_IF_ERROR(*link->OptimizerStatus(number));
  return OkStatus();
}

Status KeyClient::Barrier() {
  int keys = 0;
  {
    const std::lock_guard lock(mutex_);
    keys = static_cast<int>(keys_.size());
  }
  for (int key = 0; key < keys; ++key) PENSTOCK_RETURN_IF_ERROR(Ready(key).status());
  // Behind an asynchronous worker's barrier others see what it has pushed.
  if (!options_.sync) PENSTOCK_RETURN_IF_ERROR(WaitForAll());
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(session_.status());
    number = ++barriers_;
    links_.front()->EnterBarrier(number);
  }
  return wait_([&] { return links_.front()->BarrierIsPassed(number); });
}

Result<std::uint64_t> KeyClient::Rounds(int index) {
  PENSTOCK_ASSIGN_OR_RETURN(const Key* const key, Ready(index));
  const std::lock_guard lock(mutex_);
  return key->pushes;
}

Status KeyClient::Complete() {
  int keys = 0;
  {
    const std::lock_guard lock(mutex_);
    keys = static_cast<int>(keys_.size());
  }
  for (int key = 0; key < keys; ++key) (void)Ready(key);  // worker 0 owes the others its values
  PENSTOCK_RETURN_IF_ERROR(LastCut());
  PENSTOCK_RETURN_IF_ERROR(session_.Complete());
  return wait_([&] { return session_.CompleteDone(); });
}

}  // namespace penstock::client
