#include "framework/text/cursor.h"

#include <charconv>
#include <limits>
#include <optional>
#include <set>

namespace penstock {
namespace {

constexpr std::int64_t kIntMin = std::numeric_limits<std::int32_t>::min();
constexpr std::int64_t kIntMax = std::numeric_limits<std::int32_t>::max();

// Returns an empty list whose elements have the scalar kind.
std::optional<Attr> EmptyListOf(AttrKind scalar) {
  switch (scalar) {
    case AttrKind::kInt:
      return Attr(std::vector<std::int32_t>());
    case AttrKind::kFloat:
      return Attr(std::vector<float>());
    case AttrKind::kString:
      return Attr(std::vector<std::string>());
    case AttrKind::kBool:
      return Attr(std::vector<bool>());
    case AttrKind::kBlock:
      return Attr(std::vector<BlockRef>());
    case AttrKind::kLong:
      return Attr(std::vector<std::int64_t>());
    default:
      return std::nullopt;
  }
}

std::optional<Attr> EmptyListNamed(std::string_view kind) {
  for (const AttrKind scalar : {AttrKind::kInt, AttrKind::kFloat, AttrKind::kString, AttrKind::kBool,
                                AttrKind::kBlock, AttrKind::kLong}) {
    std::optional<Attr> list = EmptyListOf(scalar);
    if (AttrKindName(KindOf(*list)) == kind) return list;
  }
  return std::nullopt;
}

// Appends a scalar to a list of its kind; false if the kinds differ.
bool AppendElement(Attr& list, const Attr& element) {
  return std::visit(
      [&](auto& values) {
        if constexpr (requires { values.push_back(typename std::decay_t<decltype(values)>::value_type()); } &&
                      !std::is_same_v<std::decay_t<decltype(values)>, std::string>) {
          using Element = typename std::decay_t<decltype(values)>::value_type;
          const Element* value = std::get_if<Element>(&element);
          if (value != nullptr) values.push_back(*value);
          return value != nullptr;
        } else {
          return false;
        }
      },
      list);
}

std::optional<float> FloatOf(std::string_view text) {
  float value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void Cursor::Hold(std::size_t count) {
  const auto skipped = [this](const Token& token) { return depth_ > 0 && token.kind == TokenKind::kNewline; };
  if (depth_ > 0) std::erase_if(ahead_, skipped);
  while (ahead_.size() < count) {
    const bool ended = !ahead_.empty() && (ahead_.back().kind == TokenKind::kEnd || !bad_.ok());
    Result<Token> token = ended ? ahead_.back() : lexer_.Next();
    if (!token.ok()) {
      bad_ = std::move(token).status();
      token = Token();
      token->kind = TokenKind::kNone;
    }
    if (!skipped(*token)) ahead_.push_back(*std::move(token));
  }
}

const Token& Cursor::Peek() {
  Hold(1);
  return ahead_[0];
}

const Token& Cursor::PeekSecond() {
  Hold(2);
  return ahead_[1];
}

Token Cursor::Take() {
  Hold(1);
  const bool stays = ahead_[0].kind == TokenKind::kEnd || ahead_[0].kind == TokenKind::kNone;
  if (stays) return ahead_[0];
  Token token = std::move(ahead_[0]);
  ahead_.pop_front();
  return token;
}

bool Cursor::At(std::string_view text) {
  const Token& token = Peek();
  return (token.kind == TokenKind::kPunct || token.kind == TokenKind::kName) && token.text == text;
}

bool Cursor::AtName() { return Peek().kind == TokenKind::kName || Peek().kind == TokenKind::kString; }

bool Cursor::TakeIf(std::string_view text) {
  if (!At(text)) return false;
  Take();
  return true;
}

Status Cursor::Expect(std::string_view text) {
  if (TakeIf(text)) return OkStatus();
  return Error(StrCat("expected \"", text, "\", ", Found()));
}

Status Cursor::Open(std::string_view bracket) {
  PENSTOCK_RETURN_IF_ERROR(Expect(bracket));
  ++depth_;
  return OkStatus();
}

Status Cursor::Close(std::string_view bracket) {
  PENSTOCK_RETURN_IF_ERROR(Expect(bracket));
  --depth_;
  return OkStatus();
}

void Cursor::SkipNewlines() {
  while (AtNewline()) Take();
}

Status Cursor::EndOfStatement() {
  if (AtNewline()) {
    Take();
    return OkStatus();
  }
  if (AtEnd() || At("}")) return OkStatus();
  return Error(StrCat("expected the end of the line, ", Found()));
}

Result<std::string> Cursor::Name(std::string_view what) {
  if (!AtName()) return Error(StrCat("expected ", what, ", ", Found()));
  return Take().text;
}

Result<std::string> Cursor::String(std::string_view what) {
  if (Peek().kind != TokenKind::kString) return Error(StrCat("expected ", what, " in quotes, ", Found()));
  return Take().text;
}

Result<std::int64_t> Cursor::Integer(std::string_view what, std::int64_t least, std::int64_t most) {
  const Token token = Peek();
  if (token.kind != TokenKind::kInt) return Error(StrCat("expected ", what, ", ", Found()));
  if (token.integer < least || token.integer > most) {
    return Error(StrCat(what, " is ", token.integer, ", not from ", least, " to ", most));
  }
  Take();
  return token.integer;
}

Result<Shape> Cursor::ShapeInBrackets() {
  PENSTOCK_RETURN_IF_ERROR(Open("["));
  Shape shape;
  while (!At("]")) {
    if (TakeIf("?")) {
      shape.Append(kUnknownDim);
    } else {
      PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t extent,
                                Integer("an extent or ?", std::numeric_limits<std::int64_t>::min(),
                                        std::numeric_limits<std::int64_t>::max()));
      shape.Append(extent);
    }
    if (!TakeIf(",")) break;
  }
  PENSTOCK_RETURN_IF_ERROR(Close("]"));
  return shape;
}

Result<Attr> Cursor::Scalar() {
  const Token token = Peek();
  if (token.kind == TokenKind::kInt) {
    if (token.integer < kIntMin || token.integer > kIntMax) {
      return Error(StrCat(token.integer, " does not fit in an int; a long is written ", token.integer, "l"));
    }
    Take();
    return Attr(static_cast<std::int32_t>(token.integer));
  }
  if (token.kind == TokenKind::kLong) {
    Take();
    return Attr(token.integer);
  }
  if (token.kind == TokenKind::kString) return Attr(Take().text);
  if (token.kind == TokenKind::kFloat || At("inf") || At("nan")) {
    const std::optional<float> value = FloatOf(token.text);
    if (!value) return Error(StrCat(token.text, " does not fit in a float"));
    Take();
    return Attr(*value);
  }
  if (TakeIf("true")) return Attr(true);
  if (TakeIf("false")) return Attr(false);
  if (TakeIf("^")) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::int64_t block, Integer("the index of a block", kIntMin, kIntMax));
    return Attr(BlockRef{static_cast<std::int32_t>(block)});
  }
  return Error(StrCat("expected a value, ", Found()));
}

Result<Attr> Cursor::List() {
  const Token begin = Peek();
  PENSTOCK_RETURN_IF_ERROR(Open("["));
  std::optional<Attr> list;
  while (!At("]")) {
    const Token at = Peek();
    PENSTOCK_ASSIGN_OR_RETURN(const Attr element, Scalar());
    if (!list) list = EmptyListOf(KindOf(element));
    if (!AppendElement(*list, element)) {
      return ErrorAt(at, StrCat("a list of ", AttrKindName(KindOf(*list)), " cannot hold this ",
                                AttrKindName(KindOf(element))));
    }
    if (!TakeIf(",")) break;
  }
  PENSTOCK_RETURN_IF_ERROR(Close("]"));
  if (list) return *list;
  if (!TakeIf(":")) return ErrorAt(begin, "an empty list needs its kind, as in []:ints");
  const Token kind = Peek();
  if (kind.kind == TokenKind::kName) list = EmptyListNamed(kind.text);
  if (!list) return Error(StrCat("expected ints, longs, floats, strings, bools or blocks, ", Found()));
  Take();
  return *list;
}

Result<Attr> Cursor::Literal() { return At("[") ? List() : Scalar(); }

Result<std::vector<NamedAttr>> Cursor::Attrs() {
  std::vector<NamedAttr> attrs;
  if (!At("{")) return attrs;
  PENSTOCK_RETURN_IF_ERROR(Open("{"));
  std::set<std::string> names;
  while (!At("}")) {
    const Token at = Peek();
    PENSTOCK_ASSIGN_OR_RETURN(std::string name, Name("an attribute's name"));
    if (!names.insert(name).second)
      return ErrorAt(at, StrCat("attribute ", SpellName(name), " is given twice"));
    PENSTOCK_RETURN_IF_ERROR(Expect("="));
    PENSTOCK_ASSIGN_OR_RETURN(Attr value, Literal());
    attrs.push_back({name, std::move(value)});
    if (!TakeIf(",")) break;
  }
  PENSTOCK_RETURN_IF_ERROR(Close("}"));
  return attrs;
}

Status Cursor::Error(const std::string& message) {
  const Token& next = Peek();
  return next.kind == TokenKind::kNone ? bad_ : ErrorAt(next, message);
}

Status Cursor::ErrorAt(const Token& token, const std::string& message) const {
  return TextError(text_, filename_, token.line, token.column, message);
}

std::string Cursor::Found() {
  const Token& token = Peek();
  switch (token.kind) {
    case TokenKind::kNewline:
      return "found the end of the line";
    case TokenKind::kEnd:
      return "found the end of the text";
    case TokenKind::kString:
      return StrCat("found the string ", Quote(std::string_view(token.text).substr(0, 40)));
    default:
      return StrCat("found \"", std::string_view(token.text).substr(0, 40), "\"");
  }
}

}  // namespace penstock
