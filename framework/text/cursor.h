// Walks over the tokens of a text, for parsers by recursive descent.
//
//   Cursor in(text, "main.ir");
//   PENSTOCK_RETURN_IF_ERROR(in.Expect("program"));
//   if (in.TakeIf("=")) ...
//
// Line ends separate statements, except between Open and Close of a bracket. On a lexical error the cursor
// yields an invalid token that no parser accepts; Error at that token is the lexer's error.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"
#include "framework/ir/attr.h"
#include "framework/ir/op.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"
#include "framework/text/lexer.h"

namespace penstock {

class Cursor {
 public:
  // Both must outlive the cursor.
  Cursor(std::string_view text, std::string_view filename)
      : text_(text), filename_(filename), lexer_(text, filename) {}

  const Token& Peek();
  const Token& PeekSecond();  // the token after Peek
  Token Take();
  // True if the next token is this punctuation or bare word.
  bool At(std::string_view text);
  bool AtName();  // a bare name or a quoted one
  bool AtNewline() { return Peek().kind == TokenKind::kNewline; }
  bool AtEnd() { return Peek().kind == TokenKind::kEnd; }
  bool TakeIf(std::string_view text);
  Status Expect(std::string_view text);
  Status Open(std::string_view bracket);  // Expect; line ends are skipped until Close
  Status Close(std::string_view bracket);
  void SkipNewlines();
  Status EndOfStatement();  // a line end, the end of the text, or the "}" that closes a block

  Result<std::string> Name(std::string_view what);
  Result<std::string> String(std::string_view what);
  Result<std::int64_t> Integer(std::string_view what, std::int64_t least, std::int64_t most);

  // "[" dim,* "]" with "?" for an unknown extent.
  Result<Shape> ShapeInBrackets();
  // One attribute value.
  Result<Attr> Literal();
  // "{" (name "=" literal),* "}"; empty if there is no "{". A duplicate name is an error.
  Result<std::vector<NamedAttr>> Attrs();

  // An error at the next token, or at a token taken before.
  Status Error(const std::string& message);
  Status ErrorAt(const Token& token, const std::string& message) const;
  std::string Found();  // "found ..." for messages

 private:
  // Reads ahead until `count` tokens are held, or until the end or an invalid token.
  void Hold(std::size_t count);
  Result<Attr> Scalar();
  Result<Attr> List();

  std::string_view text_;
  std::string_view filename_;
  Lexer lexer_;
  std::deque<Token> ahead_;  // read but not taken yet
  Status bad_;               // the lexer's error, if a token is invalid
  int depth_ = 0;
};

}  // namespace penstock
