// The value of an op's attribute. One alternative per AttrType of the wire form, in its order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
std::string_view AttrKindName(AttrKind kind);  // "ints", as the textual form and errors spell it
// As the textual form prints it: 3, 3l, 0.5, "x", true, ^2, [1, 2], [1l, 2l], []:longs.
std::string AttrToString(const Attr& attr);

}  // namespace penstock
