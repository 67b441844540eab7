// Appends fields in protobuf's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "framework/wire/fields.h"

namespace penstock::wire {

inline constexpr std::size_t kVarintBytesMax = 10;

// Returns the end of the written bytes.
inline char* WriteVarint(std::uint64_t value, char* to) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

inline char* WriteTag(int number, int wire_type, char* to) {
  return WriteVarint(static_cast<std::uint64_t>(number) << 3 | static_cast<unsigned>(wire_type), to);
}

inline void AppendNumberField(int number, std::int64_t value, std::string& out) {
  char bytes[2 * kVarintBytesMax];
  char* end = WriteTag(number, kVarint, bytes);
  end = WriteVarint(static_cast<std::uint64_t>(value), end);  // negative numbers take ten bytes, even int32
  out.append(bytes, static_cast<std::size_t>(end - bytes));
}

inline void AppendFloatField(int number, float value, std::string& out) {
  char bytes[kVarintBytesMax + sizeof(value)];
  char* end = WriteTag(number, kFixed32, bytes);
  std::memcpy(end, &value, sizeof(value));
  out.append(bytes, static_cast<std::size_t>(end - bytes) + sizeof(value));
}

inline void AppendTextField(int number, std::string_view text, std::string& out) {
  char bytes[2 * kVarintBytesMax];
  char* end = WriteTag(number, kBytes, bytes);
  end = WriteVarint(text.size(), end);
  out.append(bytes, static_cast<std::size_t>(end - bytes));
  out.append(text);
}

// Appends a field whose bytes `write` appends. Inserts the length in front afterwards.
template <typename Write>
void AppendMessage(int number, std::string& out, const Write& write) {
  char bytes[kVarintBytesMax + 1];
  char* end = WriteTag(number, kBytes, bytes);
  *end++ = '\0';  // room for lengths under 128
  out.append(bytes, static_cast<std::size_t>(end - bytes));
  const std::size_t begin = out.size();
  write();
  const std::size_t length = out.size() - begin;
  char* const length_end = WriteVarint(length, bytes);
  out[begin - 1] = bytes[0];
  if (length >= 0x80) out.insert(begin, bytes + 1, static_cast<std::size_t>(length_end - bytes) - 1);
}

}  // namespace penstock::wire
