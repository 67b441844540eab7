// Cuts the textual form of programs and plans into tokens, each with its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock {

enum class TokenKind {
  kName,     // mul, w@GRAD, fc_0.w_0
  kString,   // "…": escapes resolved
  kInt,      // 3, -1
  kLong,     // 3l
  kFloat,    // 1.0, 1e-08, -inf (inf and nan without a sign are names)
  kNewline,  // one or more line ends
  kPunct,    // one of ( ) [ ] { } < > , : = ^ @ | ?
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string
      text;  // the name, the string's content, the punctuation, or the number as written without its l
  std::int64_t integer = 0;  // kInt, kLong
  int line = 1, column = 1;  // from 1; a column counts bytes
};

// The whole text; the last token is kEnd. kInvalidArgument E-text-syntax with file:line:column.
Result<std::vector<Token>> Lex(std::string_view text, std::string_view filename);

// "file:line:column: message", and below it the line with a mark under the place.
Status TextError(std::string_view text, std::string_view filename, int line, int column,
                 const std::string& message);

// A name as the textual form spells it: bare where the grammar allows, else in quotes.
std::string SpellName(std::string_view name);

}  // namespace penstock
