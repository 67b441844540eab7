#include "transpiler/pipeline/op_digest.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "framework/base/hash.h"
#include "framework/base/strings.h"

namespace penstock {
namespace {

std::uint64_t OfNumber(std::uint64_t number) { return number; }
std::uint64_t OfNumber(float number) { return std::bit_cast<std::uint32_t>(number); }

}  // namespace

// The mixing function of splitmix64: changing one bit of the input changes about half of the result's bits.
std::uint64_t Chain(std::uint64_t digest, std::uint64_t next) {
  std::uint64_t x = digest * 0x9e3779b97f4a7c15ull + next + 0x632be59bd9b4e019ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

bool IsOfProcess(const Op& op, std::string_view attr) {
  if (StartsWith(attr, "op_")) {
    return attr == kRoleAttr || attr == kRoleVarAttr || attr == kNameScopeAttr || attr == kDeviceAttr ||
           attr == kCallstackAttr;
  }
  // The user's functions are numbered in the order of their use; random_crop draws a seed if none is given.
  return attr == "forward_callable_id" || attr == "backward_callable_id" ||
         (attr == "startup_seed" && op.type() == "random_crop");
}

std::uint64_t OpDigest::OfName(std::string_view name) {
  if (name.empty() || name == kEmptyVarName) return 0;
  Known& known = known_.try_emplace(name, Known{known_.size() + 1}).first->second;
  known.mentioned = true;
  return known.number;
}

std::uint64_t OpDigest::OfSlots(const std::vector<Slot>& slots) {
  std::uint64_t digest = 0;
  for (const Slot& slot : slots) {
    if (slot.args.empty()) continue;
    digest = Chain(digest, Fnv1a64(slot.name.str()));
    for (const std::string& name : slot.args) digest = Chain(digest, OfName(name));
  }
  return digest;
}

// A string that is the name of a variable counts as that variable, because attributes of some ops name
// variables that their blocks pass out.
std::uint64_t OpDigest::OfAttr(int block, const Attr& attr) {
  const auto of_text = [&](const std::string& text) {
    return program_.FindVar(block, text) != nullptr ? OfName(text) : Fnv1a64(text);
  };
  return std::visit(
      [&](const auto& value) -> std::uint64_t {
        using T = std::decay_t<decltype(value)>;
        std::uint64_t digest = attr.index();
        if constexpr (std::is_same_v<T, std::string>) {
          return Chain(digest, of_text(value));
        } else if constexpr (std::is_same_v<T, BlockRef>) {
          return Chain(digest, OfBlock(value.index));
        } else if constexpr (std::is_same_v<T, float>) {
          return Chain(digest, OfNumber(value));
        } else if constexpr (std::is_arithmetic_v<T>) {
          return Chain(digest, OfNumber(static_cast<std::uint64_t>(value)));
        } else {
          for (const auto& one : value) {
            using Element = typename T::value_type;
            if constexpr (std::is_same_v<Element, std::string>) {
              digest = Chain(digest, of_text(one));
            } else if constexpr (std::is_same_v<Element, BlockRef>) {
              digest = Chain(digest, OfBlock(one.index));
            } else if constexpr (std::is_same_v<Element, float>) {
              digest = Chain(digest, OfNumber(one));
            } else {
              digest = Chain(digest, OfNumber(static_cast<std::uint64_t>(one)));
            }
          }
          return digest;
        }
      },
      attr);
}

std::uint64_t OpDigest::OfBlock(int block) {
  if (block < 0 || block >= program_.block_count()) return 0;
  if (std::find(inside_.begin(), inside_.end(), block) != inside_.end()) return 0;
  inside_.push_back(block);
  std::uint64_t digest = 0;
  for (const OpEntry& entry : program_.block(block).ops()) digest = Chain(digest, Of(block, *entry.op));
  inside_.pop_back();
  return digest;
}

std::uint64_t OpDigest::Of(int block, const Op& op) {
  const std::uint64_t slots = Chain(OfSlots(op.outputs()), OfSlots(op.inputs()));
  return Chain(OfAttrs(block, op), slots);
}

std::uint64_t OpDigest::OfAttrs(int block, const Op& op) {
  std::uint64_t attrs = 0;
  for (const NamedAttr& attr : op.attrs()) {
    if (IsOfProcess(op, attr.name.str())) continue;
    attrs += Chain(Fnv1a64(attr.name.str()), OfAttr(block, attr.value));
  }
  return Chain(Fnv1a64(op.type()), attrs);
}

}  // namespace penstock
