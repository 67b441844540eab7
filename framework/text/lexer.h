// Splits the textual form of programs and plans into tokens with their positions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
  kNone,  // an invalid token
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  // The name, the string's content, the punctuation, or the number as written, without its l.
  std::string text;
  std::int64_t integer = 0;  // kInt, kLong
  int line = 1, column = 1;  // from 1; a column counts bytes
};

// Produces one token at a time, so that memory does not grow with the text.
class Lexer {
 public:
  // Both must outlive the lexer.
  Lexer(std::string_view text, std::string_view filename) : text_(text), filename_(filename) {}
  // Returns the next token; kEnd at the end, and again in later calls. kInvalidArgument E-text-syntax with
  // file:line:column.
  Result<Token> Next();

 private:
  char Peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  void SkipBlanks();
  Status Error(const Token& token, const std::string& message) const;
  Status Cut(Token& token);
  Status Number(Token& token);
  Status String(Token& token);
  Status Escape(Token& token);

  std::string_view text_;
  std::string_view filename_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
  bool after_newline_ = false;  // several line ends are one token
};

// "file:line:column: message", followed by the line and a mark below the position.
Status TextError(std::string_view text, std::string_view filename, int line, int column,
                 const std::string& message);

// A name in the textual form: bare if the grammar allows it, else quoted.
std::string SpellName(std::string_view name);

}  // namespace penstock
