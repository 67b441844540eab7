#include "framework/text/lexer.h"

#include <algorithm>
#include <charconv>

namespace penstock {
namespace {

constexpr std::string_view kPunctuation = "()[]{}<>,:=^@|?";

bool IsNameStart(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c) || c == '.' || c == '@' || c == '/'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void AppendUtf8(std::string& out, std::uint32_t code) {
  const auto byte = [&out](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | (code >> 6));
    byte(0x80 | (code & 63));
  } else {
    byte(0xe0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 63));
    byte(0x80 | (code & 63));
  }
}

std::string_view LineOf(std::string_view text, int line) {
  for (int i = 1; i < line; ++i) text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  return text.substr(0, text.find('\n'));
}

}  // namespace

Result<Token> Lexer::Next() {
  while (true) {
    SkipBlanks();
    Token token;
    token.line = line_;
    token.column = static_cast<int>(at_ - line_begin_) + 1;
    if (at_ == text_.size()) return token;
    PENSTOCK_RETURN_IF_ERROR(Cut(token));
    const bool repeated = token.kind == TokenKind::kNewline && after_newline_;
    after_newline_ = token.kind == TokenKind::kNewline;
    if (!repeated) return token;
  }
}

void Lexer::SkipBlanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else {
      return;
    }
  }
}

Status Lexer::Error(const Token& token, const std::string& message) const {
  return TextError(text_, filename_, token.line, token.column, message);
}

Status Lexer::Cut(Token& token) {
  const char c = Peek();
  if (c == '\n') {
    token.kind = TokenKind::kNewline;
    ++at_;
    ++line_;
    line_begin_ = at_;
    return OkStatus();
  }
  if (IsNameStart(c)) {
    token.kind = TokenKind::kName;
    const std::size_t begin = at_;
    while (at_ < text_.size() && IsNamePart(text_[at_])) ++at_;
    token.text = text_.substr(begin, at_ - begin);
    return OkStatus();
  }
  if (c == '"') return String(token);
  if (IsDigit(c) || c == '-') return Number(token);
  if (kPunctuation.find(c) != std::string_view::npos && c != '\0') {
    token.kind = TokenKind::kPunct;
    token.text = c;
    ++at_;
    return OkStatus();
  }
  return Error(
      token,
      StrCat("character ", Quote(text_.substr(at_, std::max<std::size_t>(1, Utf8Length(text_.substr(at_))))),
             " has no meaning here"));
}

Status Lexer::Number(Token& token) {
  const std::size_t begin = at_;
  if (Peek() == '-') ++at_;
  if (const std::string_view word = text_.substr(at_, 3); word == "inf" || word == "nan") {
    at_ += 3;
    token.kind = TokenKind::kFloat;
    token.text = text_.substr(begin, at_ - begin);
    return OkStatus();
  }
  bool is_float = false;
  while (IsDigit(Peek())) ++at_;
  if (Peek() == '.' && IsDigit(Peek(1))) {
    is_float = true;
    ++at_;
    while (IsDigit(Peek())) ++at_;
  }
  const std::size_t sign = Peek(1) == '-' || Peek(1) == '+' ? 1 : 0;
  if (Peek() == 'e' && IsDigit(Peek(1 + sign))) {
    is_float = true;
    at_ += 1 + sign;
    while (IsDigit(Peek())) ++at_;
  }
  token.text = text_.substr(begin, at_ - begin);
  token.kind = is_float ? TokenKind::kFloat : TokenKind::kInt;
  const char* last = token.text.data() + token.text.size();
  const std::errc error = is_float ? std::errc() : std::from_chars(token.text.data(), last, token.integer).ec;
  if (!is_float && Peek() == 'l') {
    token.kind = TokenKind::kLong;
    ++at_;
  }
  if (error == std::errc::result_out_of_range)
    return Error(token, StrCat(token.text, " does not fit in 64 bits"));
  if (error != std::errc() || IsNamePart(Peek())) {
    return Error(token, StrCat("a number cannot be read at ", Quote(text_.substr(begin, at_ + 1 - begin))));
  }
  return OkStatus();
}

Status Lexer::String(Token& token) {
  token.kind = TokenKind::kString;
  ++at_;
  while (true) {
    const char c = Peek();
    if (at_ == text_.size() || c == '\n') return Error(token, "the string has no closing quote on its line");
    ++at_;
    if (c == '"') return OkStatus();
    if (c == '\\') {
      PENSTOCK_RETURN_IF_ERROR(Escape(token));
    } else {
      token.text.push_back(c);
    }
  }
}

Status Lexer::Escape(Token& token) {
  constexpr std::string_view kLetters = "\"\\/ntrbf";
  constexpr std::string_view kMeanings = "\"\\/\n\t\r\b\f";
  const char c = Peek();
  if (const std::size_t i = kLetters.find(c); i != std::string_view::npos && c != '\0') {
    token.text.push_back(kMeanings[i]);
    ++at_;
    return OkStatus();
  }
  const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 0;
  std::uint32_t code = 0;
  for (std::size_t i = 1; i <= digits; ++i) {
    const int digit = HexDigit(Peek(i));
    if (digit < 0) return Error(token, StrCat("the string's escape \\", c, " needs ", digits, " hex digits"));
    code = code * 16 + static_cast<std::uint32_t>(digit);
  }
  if (digits == 0)
    return Error(
        token, "the string has an escape that is not one of \\\" \\\\ \\/ \\n \\t \\r \\b \\f \\uXXXX \\xHH");
  at_ += 1 + digits;
  if (c == 'x') {
    token.text.push_back(static_cast<char>(code));
  } else {
    AppendUtf8(token.text, code);
  }
  return OkStatus();
}

Status TextError(std::string_view text, std::string_view filename, int line, int column,
                 const std::string& message) {
  constexpr std::size_t kShown = 160;
  Status status = InvalidArgument("E-text-syntax", filename, ":", line, ":", column, ": ", message);
  const std::string_view shown = LineOf(text, line);
  const auto before = static_cast<std::size_t>(column - 1);
  if (StripSpace(shown).empty() || shown.size() > kShown || before > shown.size() ||
      Quote(shown).find('\\') != std::string::npos)
    return status;
  return std::move(status).With(std::string(shown)).With(std::string(before, ' ') + "^");
}

std::string SpellName(std::string_view name) {
  bool bare = !name.empty() && IsNameStart(name[0]);
  for (const char c : name) bare = bare && IsNamePart(c);
  return bare ? std::string(name) : Quote(name);
}

}  // namespace penstock
