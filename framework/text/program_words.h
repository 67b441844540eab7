// Names of the attributes of a program in the textual form.
#pragma once

#include <string_view>

namespace penstock {

inline constexpr std::string_view kVersionWord = "version";         // a long
inline constexpr std::string_view kRandomSeedWord = "random_seed";  // a long
inline constexpr std::string_view kPoliciesWord = "policies";       // strings: name, value, name, value...
inline constexpr std::string_view kPlanWord = "plan";               // the plan's text
inline constexpr std::string_view kJobFactsWord = "job_facts";      // the facts that all roles share
inline constexpr std::string_view kChunkRowsWord = "chunk_rows";    // strings: variable, rows, variable...
inline constexpr std::string_view kCompatibleMapWord = "op_compatible_map";  // the message's bytes
inline constexpr std::string_view kUnknownFieldsWord = "unknown_fields";     // bytes kept for writing back

}  // namespace penstock
