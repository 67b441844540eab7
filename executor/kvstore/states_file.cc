#include "executor/kvstore/states_file.h"

#include <utility>

#include "framework/base/strings.h"
#include "framework/tensor/serialize.h"
#include "framework/text/cursor.h"

namespace penstock::kvstore {
namespace {

constexpr std::int64_t kStatesMost = 1000;  // of a key; of a program, as many as it has
constexpr std::string_view kFirstLine = "penstock kv states 1\n";

template <typename... Parts>
Status BadStates(const Parts&... parts) {
  return DataLoss("E-kv-states", "states of an optimizer: ", StrCat(parts...));
}

// The next line, without its end; nullopt if there is none.
std::optional<std::string_view> TakeLine(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 1);
  return line;
}

struct Header {
  std::string name;
  std::int64_t count = 0, states = 0;
};
Result<Header> ReadHeader(std::string_view line) {
  Cursor in(line, "states of an optimizer");
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  Header header;
  PENSTOCK_ASSIGN_OR_RETURN(header.count, in.Integer("a number of updates", 0, kMost));
  PENSTOCK_ASSIGN_OR_RETURN(header.states, in.Integer("a number of states", 0, kStatesMost));
  PENSTOCK_ASSIGN_OR_RETURN(header.name, in.Name("a key"));
  if (!in.AtEnd()) return in.Error(StrCat("expected the end of the line, ", in.Found()));
  return header;
}

}  // namespace

std::string SavedStates::ToBytes() const {
  std::string bytes(kFirstLine);
  bytes += StrCat(optimizer ? optimizer->ToString() : "-", "\n", keys.size(), "\n");
  for (const auto& [name, key] : keys)
    bytes += StrCat(key.count, " ", key.states.size(), " ", SpellName(name), "\n");
  for (const auto& [name, key] : keys) {
    for (const Tensor& state : key.states) AppendTensor(bytes, state);
  }
  return bytes;
}

Result<SavedStates> SavedStates::Parse(std::string_view bytes, const OpRegistry* ops) {
  if (!StartsWith(bytes, kFirstLine))
    return BadStates("the file does not begin with \"penstock kv states 1\"");
  bytes.remove_prefix(kFirstLine.size());
  SavedStates saved;
  const std::optional<std::string_view> optimizer = TakeLine(bytes), count = TakeLine(bytes);
  if (!optimizer || !count) return BadStates("the file ends within its head");
  if (*optimizer != "-") {
    Result<KeyOptimizer> made = ParseOptimizer(*optimizer, ops);
    if (!made.ok()) return BadStates(made.status().message());
    saved.optimizer = *std::move(made);
  }
  Cursor in(*count, "states of an optimizer");
  const Result<std::int64_t> keys = in.Integer("a number of keys", 0, std::int64_t{1} << 40);
  if (!keys.ok()) return BadStates(keys.status().message());
  std::vector<Header> headers;
  for (std::int64_t i = 0; i < *keys; ++i) {
    const std::optional<std::string_view> line = TakeLine(bytes);
    if (!line) return BadStates("the file ends after ", i, " of ", *keys, " keys");
    Result<Header> header = ReadHeader(*line);
    if (!header.ok()) return BadStates(header.status().message());
    headers.push_back(*std::move(header));
  }
  for (const Header& header : headers) {
    Key& key = saved.keys[header.name];
    key.count = header.count;
    for (std::int64_t i = 0; i < header.states; ++i) {
      Result<Tensor> state = ReadTensor(bytes);
      if (!state.ok()) return BadStates("key ", header.name, ": ", state.status().message());
      key.states.push_back(*std::move(state));
    }
  }
  if (!bytes.empty()) return BadStates(bytes.size(), " bytes follow the last state");
  return saved;
}

}  // namespace penstock::kvstore
