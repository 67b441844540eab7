// The value of an op's attribute. One alternative per AttrType of the wire form, in its order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace penstock {

// The index of a block of the same program, as an attribute (`while`'s body, a pserver's optimize block).
struct BlockRef {
  std::int32_t index = 0;
  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

using Attr = std::variant<std::int32_t,                // INT
                          float,                       // FLOAT
                          std::string,                 // STRING
                          std::vector<std::int32_t>,   // INTS
                          std::vector<float>,          // FLOATS
                          std::vector<std::string>,    // STRINGS
                          bool,                        // BOOLEAN
                          std::vector<bool>,           // BOOLEANS
                          BlockRef,                    // BLOCK
                          std::int64_t,                // LONG
                          std::vector<BlockRef>,       // BLOCKS
                          std::vector<std::int64_t>>;  // LONGS

enum class AttrKind {
  kInt = 0,
  kFloat,
  kString,
  kInts,
  kFloats,
  kStrings,
  kBool,
  kBools,
  kBlock,
  kLong,
  kBlocks,
  kLongs,
};

inline AttrKind KindOf(const Attr& attr) { return static_cast<AttrKind>(attr.index()); }

// Whether an attribute of kind `given` is accepted where `expected` is declared. As in Fluid, an int is
// accepted as a long or a float, and ints as longs; Fluid's own programs use it.
constexpr bool ReadsAs(AttrKind given, AttrKind expected) {
  return given == expected ||
         (given == AttrKind::kInt && (expected == AttrKind::kLong || expected == AttrKind::kFloat)) ||
         (given == AttrKind::kInts && expected == AttrKind::kLongs);
}
// The attribute converted to T; nullopt if ReadsAs does not allow it.
template <typename T>
std::optional<T> AttrAs(const Attr& attr) {
  if (const T* same = std::get_if<T>(&attr)) return *same;
  if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, float>) {
    if (const auto* narrow = std::get_if<std::int32_t>(&attr)) return static_cast<T>(*narrow);
  } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
    if (const auto* narrow = std::get_if<std::vector<std::int32_t>>(&attr))
      return T(narrow->begin(), narrow->end());
  }
  return std::nullopt;
}

std::string_view AttrKindName(AttrKind kind);  // "ints", as the textual form and errors spell it
// As the textual form prints it: 3, 3l, 0.5, "x", true, ^2, [1, 2], [1l, 2l], []:longs.
std::string AttrToString(const Attr& attr);

}  // namespace penstock
