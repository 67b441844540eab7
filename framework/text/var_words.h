// The keywords of variable declarations, shared by the printer and the parser.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

#include "framework/ir/var.h"

namespace penstock {

// The first word of a declaration.
inline constexpr std::string_view kParamWord = "param";      // a parameter, persistable
inline constexpr std::string_view kPersistWord = "persist";  // persistable, not a parameter
inline constexpr std::string_view kDataWord = "data";        // must be fed
inline constexpr std::string_view kVarWord = "var";
bool IsDeclarationWord(std::string_view word);

// Flags.
inline constexpr std::string_view kLod = "lod";
inline constexpr std::string_view kStopGradient = "stop_gradient";
inline constexpr std::string_view kDistributed = "distributed";
inline constexpr std::string_view kParameter = "parameter";  // where the first word is not "param"
inline constexpr std::string_view kData = "data";            // where the first word is not "data"
inline constexpr std::string_view kNeedCheckFeed = "need_check_feed";
inline constexpr std::string_view kTrainable = "trainable";         // trainable=false
inline constexpr std::string_view kLearningRate = "learning_rate";  // learning_rate=0.5
inline constexpr std::string_view kRows = "rows";                   // rows=[0, 7) of w[13, 2048]

inline constexpr std::int64_t kLodMin = std::numeric_limits<std::int32_t>::min();
inline constexpr std::int64_t kLodMax = std::numeric_limits<std::int32_t>::max();

// "control" for a tensor without a type, "rows", "array", "raw", "step_scopes", ...
std::string_view VarKindWord(VarKind kind);
std::optional<VarKind> VarKindFromWord(std::string_view word);

}  // namespace penstock
