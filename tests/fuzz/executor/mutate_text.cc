#include <algorithm>
#include <cctype>
#include <vector>

#include "framework/base/strings.h"
#include "tests/fuzz/executor/mutate.h"

namespace penstock::fuzz {
namespace {

struct Piece {
  std::size_t begin = 0, end = 0;
};

bool IsWordChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '@' || c == '-';
}

// The words and numbers of the text.
std::vector<Piece> Words(const std::string& text) {
  std::vector<Piece> words;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && IsWordChar(text[end])) ++end;
    if (end > i) words.push_back({i, end});
    i = std::max(end, i + 1);
  }
  return words;
}

std::vector<Piece> Lines(const std::string& text) {
  std::vector<Piece> lines;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = text.find('\n', i);
    end = end == std::string::npos ? text.size() : end + 1;
    lines.push_back({i, end});
    i = end;
  }
  return lines;
}

std::string Of(const std::string& text, Piece piece) {
  return text.substr(piece.begin, piece.end - piece.begin);
}

bool IsNumber(const std::string& word) {
  return std::isdigit(static_cast<unsigned char>(word.back())) != 0 &&
         (std::isdigit(static_cast<unsigned char>(word.front())) != 0 || word.front() == '-');
}

std::string ChangedWord(const std::string& text, Draw& draw) {
  const std::vector<Piece> words = Words(text);
  if (words.empty()) return text;
  const Piece at = draw.Of(words);
  const std::string old = Of(text, at);
  std::string word = Of(text, draw.Of(words));
  for (int i = 0; i < 8 && IsNumber(word) != IsNumber(old); ++i) word = Of(text, draw.Of(words));
  if (IsNumber(old) && draw.OneIn(2)) word = StrCat(OddExtent(draw));
  return text.substr(0, at.begin) + word + text.substr(at.end);
}

// Removes, repeats or moves the line.
std::string ChangedLine(const std::string& text, Draw& draw) {
  const std::vector<Piece> lines = Lines(text);
  if (lines.size() < 4) return text;
  const Piece at = draw.Of(lines), to = draw.Of(lines);
  switch (draw.Below(3)) {
    case 0:
      return text.substr(0, at.begin) + text.substr(at.end);
    case 1:
      return text.substr(0, to.begin) + Of(text, at) + text.substr(to.begin);
    default:
      if (to.begin <= at.begin)
        return text.substr(0, to.begin) + Of(text, at) + text.substr(to.begin, at.begin - to.begin) +
               text.substr(at.end);
      return text.substr(0, at.begin) + text.substr(at.end, to.begin - at.end) + Of(text, at) +
             text.substr(to.begin);
  }
}

}  // namespace

std::string MutatedText(const std::string& text, Draw& draw) {
  return draw.OneIn(3) ? ChangedLine(text, draw) : ChangedWord(text, draw);
}

}  // namespace penstock::fuzz
