#include "executor/collective/rendezvous/store_message.h"

#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/base/crc32c.h"
#include "framework/base/error_code.h"
#include "framework/base/hash.h"

namespace penstock::rendezvous {
namespace {

static_assert(std::endian::native == std::endian::little,
              "heads are written as this machine stores integers");

constexpr char kMagic[4] = {'P', 'N', 'R', 1};
constexpr std::size_t kVerbAt = 4, kIdAt = 8, kNumberAt = 16, kCrcAt = 24, kKeyAt = 28;

template <typename T>
T Take(std::string_view head, std::size_t at) {
  T value;
  std::memcpy(&value, head.data() + at, sizeof(value));
  return value;
}

Status Refuse(std::string_view why) {
  return DataLoss("E-rendezvous-message", "the store's protocol: ", why);
}

template <typename T>
std::optional<T> NumberOf(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Message Encode(const StoreMessage& message) {
  std::string head(kKeyAt, '\0');
  const std::uint32_t crc = Crc32c(0, message.value.data(), message.value.size());
  std::memcpy(head.data(), kMagic, sizeof(kMagic));
  head[kVerbAt] = static_cast<char>(message.verb);
  std::memcpy(head.data() + kIdAt, &message.id, sizeof(message.id));
  std::memcpy(head.data() + kNumberAt, &message.number, sizeof(message.number));
  std::memcpy(head.data() + kCrcAt, &crc, sizeof(crc));
  head += message.key;
  return {.head = std::move(head), .body = Payload::Of(message.value)};
}

Result<StoreMessage> Decode(const Message& message) {
  const std::string_view head = message.head;
  if (head.size() < kKeyAt || std::memcmp(head.data(), kMagic, sizeof(kMagic)) != 0)
    return Refuse("a message does not begin as one of its own");
  const auto verb = Take<unsigned char>(head, kVerbAt);
  if (verb > static_cast<unsigned char>(StoreVerb::kFailed)) return Refuse(StrCat("verb ", int{verb}));
  if (head.size() - kKeyAt > kKeyBytesMax) return Refuse("a key is too long");
  if (message.body.size() > kValueBytesMax) return Refuse("a value is too long");
  StoreMessage out{.verb = static_cast<StoreVerb>(verb),
                   .id = Take<std::uint64_t>(head, kIdAt),
                   .number = Take<std::int64_t>(head, kNumberAt),
                   .key = std::string(head.substr(kKeyAt)),
                   .value = message.body.ToText()};
  if (Crc32c(0, out.value.data(), out.value.size()) != Take<std::uint32_t>(head, kCrcAt))
    return Refuse("a value has another checksum than it was sent with");
  return out;
}

std::uint64_t AddressesHash(const std::vector<std::string>& addresses) {
  return Fnv1a64(Join(addresses, ","));
}

StoreMessage WriteHello(std::uint64_t id, const Hello& hello) {
  return {.verb = StoreVerb::kHello,
          .id = id,
          .number = hello.rank,
          .key = hello.job,
          .value = StrCat(hello.ranks, "\n", hello.addresses, "\n", hello.process, "\n", hello.address)};
}

Result<Hello> ReadHello(const StoreMessage& message) {
  const std::vector<std::string> lines = Split(message.value, '\n');
  if (message.verb != StoreVerb::kHello || lines.size() != 4) return Refuse("its first message is no hello");
  const auto ranks = NumberOf<int>(lines[0]);
  const auto addresses = NumberOf<std::uint64_t>(lines[1]);
  const auto process = NumberOf<std::int64_t>(lines[2]);
  if (!ranks || !addresses || !process || message.number < 0 || message.number > INT32_MAX)
    return Refuse("a hello has no such numbers");
  return Hello{.job = message.key,
               .rank = static_cast<int>(message.number),
               .ranks = *ranks,
               .addresses = *addresses,
               .process = *process,
               .address = lines[3]};
}

StoreMessage WriteFailed(StoreVerb verb, std::uint64_t id, const Status& why) {
  return {.verb = verb,
          .id = id,
          .number = static_cast<std::int64_t>(why.code()),
          .key = why.id().substr(0, kKeyBytesMax),
          .value = why.message().substr(0, kValueBytesMax)};
}

Status ReadFailed(const StoreMessage& message) {
  if (message.verb == StoreVerb::kLeave && message.key.empty()) return OkStatus();
  return Status(ErrorCodeOf(message.number).value_or(StatusCode::kUnavailable), message.key, message.value);
}

}  // namespace penstock::rendezvous
