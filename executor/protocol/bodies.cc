#include "executor/protocol/bodies.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "framework/base/error_code.h"

namespace penstock::protocol {
namespace {

constexpr std::size_t kStatusLinesMax = 64;
constexpr std::size_t kHelloContractMax = std::size_t{32} << 10;

class Writer {
 public:
  template <typename T>
  void Number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out_.append(bytes, sizeof(T));
  }
  void Text(std::string_view text) {
    Number(static_cast<std::uint32_t>(text.size()));
    out_.append(text);
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads fields one after the other. After a missing field, every read gives zero or empty, and Finish returns
// the error.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T Number() {
    T value{};
    if (left_.size() < sizeof(T)) return Broken(), value;
    std::memcpy(&value, left_.data(), sizeof(T));
    left_.remove_prefix(sizeof(T));
    return value;
  }
  std::string Text() {
    const auto size = Number<std::uint32_t>();
    if (left_.size() < size) return Broken(), std::string();
    std::string text(left_.substr(0, size));
    left_.remove_prefix(size);
    return text;
  }
  template <typename T>
  std::vector<T> Numbers() {
    const auto count = Number<std::uint32_t>();
    if (left_.size() / sizeof(T) < count) return Broken(), std::vector<T>();
    std::vector<T> numbers(count);
    for (T& number : numbers) number = Number<T>();
    return numbers;
  }
  bool AtEnd() const { return left_.empty(); }
  Status Finish() const {
    if (broken_) return DataLoss("E-rpc-body", "a message ends too early");
    if (!left_.empty()) return DataLoss("E-rpc-body", "a message has ", left_.size(), " bytes too many");
    return OkStatus();
  }

 private:
  void Broken() {
    broken_ = true;
    left_ = {};
  }
  std::string_view left_;
  bool broken_ = false;
};

}  // namespace

std::string WriteHello(const HelloBody& body) {
  Writer out;
  out.Text(body.job);
  out.Number(body.trainers);
  if (body.contract.size() <= kHelloContractMax) {
    out.Text(body.contract);
  } else {  // cut after a whole line: the receiver compares line by line
    out.Text(StrCat(body.contract.substr(0, body.contract.rfind('\n', kHelloContractMax - 1) + 1), kCutLine));
  }
  out.Text(body.job_facts);
  out.Text(body.process);
  return out.Take();
}

Result<HelloBody> ReadHello(std::string_view bytes) {
  Reader in(bytes);
  HelloBody body;
  body.job = in.Text();
  body.trainers = in.Number<std::uint32_t>();
  body.contract = in.Text();
  body.job_facts = in.Text();
  body.process = in.Text();
  PENSTOCK_RETURN_IF_ERROR(in.Finish());
  return body;
}

std::string WriteWelcome(const WelcomeBody& body) {
  Writer out;
  out.Number(body.part_bytes);
  out.Number(body.window);
  out.Number(static_cast<std::uint32_t>(body.chunk_rows.size()));
  for (const std::uint64_t rows : body.chunk_rows) out.Number(rows);
  const bool ends_here = body.incarnation == 0 && body.shards.empty() && body.cut_every == 0;
  if (body.by_turn.empty() && ends_here) return out.Take();
  out.Number(static_cast<std::uint32_t>(body.by_turn.size()));
  for (const std::uint32_t variable : body.by_turn) out.Number(variable);
  if (ends_here) return out.Take();
  out.Number(body.incarnation);
  out.Number(body.version);
  if (body.shards.empty() && body.cut_every == 0) return out.Take();
  out.Number(static_cast<std::uint32_t>(body.shards.size()));
  for (const std::uint32_t shards : body.shards) out.Number(shards);
  if (body.cut_every > 0) out.Number(body.cut_every);
  return out.Take();
}

Result<WelcomeBody> ReadWelcome(std::string_view bytes) {
  Reader in(bytes);
  WelcomeBody body;
  body.part_bytes = in.Number<std::uint32_t>();
  body.window = in.Number<std::uint32_t>();
  body.chunk_rows = in.Numbers<std::uint64_t>();
  if (!in.AtEnd()) body.by_turn = in.Numbers<std::uint32_t>();
  if (!in.AtEnd()) {
    body.incarnation = in.Number<std::uint64_t>();
    body.version = in.Number<std::uint64_t>();
  }
  if (!in.AtEnd()) body.shards = in.Numbers<std::uint32_t>();
  if (!in.AtEnd()) body.cut_every = in.Number<std::uint64_t>();
  PENSTOCK_RETURN_IF_ERROR(in.Finish());
  return body;
}

std::string WriteVariables(const std::vector<std::uint32_t>& variables) {
  Writer out;
  out.Number(static_cast<std::uint32_t>(variables.size()));
  for (const std::uint32_t variable : variables) out.Number(variable);
  return out.Take();
}

Result<std::vector<std::uint32_t>> ReadVariables(std::string_view bytes) {
  Reader in(bytes);
  auto variables = in.Numbers<std::uint32_t>();
  PENSTOCK_RETURN_IF_ERROR(in.Finish());
  return variables;
}

std::string WriteKeyPushes(const std::vector<KeyPushes>& pushes) {
  Writer out;
  out.Number(static_cast<std::uint32_t>(pushes.size() * 2));
  for (const KeyPushes& key : pushes) {
    out.Number(std::uint64_t{key.variable});
    out.Number(key.pushes);
  }
  return out.Take();
}

Result<std::vector<KeyPushes>> ReadKeyPushes(std::string_view bytes) {
  Reader in(bytes);
  const auto numbers = in.Numbers<std::uint64_t>();
  PENSTOCK_RETURN_IF_ERROR(in.Finish());
  if (numbers.size() % 2 != 0) return DataLoss("E-rpc-body", "a number of pushes is missing");
  std::vector<KeyPushes> pushes;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i] > std::numeric_limits<std::uint32_t>::max())
      return DataLoss("E-rpc-body", "there is no variable ", numbers[i]);
    pushes.push_back({static_cast<std::uint32_t>(numbers[i]), numbers[i + 1]});
  }
  return pushes;
}

std::string WriteSave(const SaveBody& body) {
  Writer out;
  out.Text(body.table);
  out.Text(body.file);
  return out.Take();
}

Result<SaveBody> ReadSave(std::string_view bytes) {
  Reader in(bytes);
  SaveBody body;
  body.table = in.Text();
  body.file = in.Text();
  PENSTOCK_RETURN_IF_ERROR(in.Finish());
  return body;
}

std::string WriteKey(const KeyBody& body) {
  Writer out;
  out.Text(body.name);
  out.Number(body.dtype);
  out.Number(static_cast<std::uint32_t>(body.shape.size()));
  for (const std::int64_t extent : body.shape) out.Number(extent);
  out.Number(static_cast<std::uint8_t>(body.rows));
  out.Number(static_cast<std::uint8_t>(body.turns));
  out.Number(static_cast<std::uint8_t>(body.whole));
  out.Number(static_cast<std::uint8_t>(body.moved));
  out.Number(static_cast<std::uint8_t>(body.leaves));
  out.Text(body.table);
  out.Number(body.begin);
  return out.Take();
}

Result<KeyBody> ReadKey(std::string_view bytes) {
  Reader in(bytes);
  KeyBody body;
  body.name = in.Text();
  body.dtype = in.Number<std::uint32_t>();
  body.shape = in.Numbers<std::int64_t>();
  body.rows = in.Number<std::uint8_t>() != 0;
  body.turns = in.Number<std::uint8_t>() != 0;
  body.whole = in.Number<std::uint8_t>() != 0;
  body.moved = in.Number<std::uint8_t>() != 0;
  body.leaves = in.Number<std::uint8_t>() != 0;
  body.table = in.Text();
  body.begin = in.Number<std::int64_t>();
  PENSTOCK_RETURN_IF_ERROR(in.Finish());
  return body;
}

std::string WriteKeyDeclared(const KeyDeclaredBody& body) {
  Writer out;
  out.Number(body.chunk_rows);
  out.Number(body.pushes);
  out.Number(body.shards);
  out.Number(body.since);
  if (!body.status.ok()) out.Text(WriteStatus(body.status));
  return out.Take();
}

Result<KeyDeclaredBody> ReadKeyDeclared(std::string_view bytes) {
  Reader in(bytes);
  KeyDeclaredBody body;
  body.chunk_rows = in.Number<std::uint64_t>();
  body.pushes = in.Number<std::uint64_t>();
  body.shards = in.Number<std::uint32_t>();
  body.since = in.Number<std::uint64_t>();
  const std::string status = in.AtEnd() ? std::string() : in.Text();
  PENSTOCK_RETURN_IF_ERROR(in.Finish());
  if (!status.empty()) body.status = ReadStatus(status);
  return body;
}

std::string WriteStatus(const Status& status) {
  Writer out;
  out.Number(static_cast<std::uint32_t>(status.code()));
  out.Text(status.id());
  out.Text(status.message());
  const std::size_t lines = std::min(status.details().size(), kStatusLinesMax);
  out.Number(static_cast<std::uint32_t>(lines));
  for (std::size_t i = 0; i < lines; ++i) out.Text(status.details()[i]);
  return out.Take();
}

Status ReadStatus(std::string_view bytes) {
  Reader in(bytes);
  const auto code = in.Number<std::uint32_t>();
  std::string id = in.Text();
  std::string message = in.Text();
  const auto lines = in.Number<std::uint32_t>();
  std::vector<std::string> details;
  for (std::uint32_t i = 0; i < lines && i < kStatusLinesMax; ++i) details.push_back(in.Text());
  PENSTOCK_RETURN_IF_ERROR(in.Finish());
  const std::optional<StatusCode> known = ErrorCodeOf(code);
  if (!known) return DataLoss("E-rpc-body", "a message carries the unknown status code ", code);
  Status status(*known, std::move(id), std::move(message));
  for (std::string& line : details) status.With(std::move(line));
  return status;
}

}  // namespace penstock::protocol
