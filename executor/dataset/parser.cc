#include "executor/dataset/parser.h"

#include <charconv>
#include <set>
#include <system_error>

#include "executor/dataset/records.h"

namespace penstock::dataset {
namespace {

constexpr std::size_t kShownMax = 60;  // bytes of a word that an error quotes

constexpr bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' || c == '\f';
}

// The words of a line.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) { SkipSpace(); }
  bool AtEnd() const { return rest_.empty(); }
  std::string_view Next() {
    std::size_t size = 0;
    while (size < rest_.size() && !IsSpace(rest_[size])) ++size;
    const std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    SkipSpace();
    return word;
  }

 private:
  void SkipSpace() {
    std::size_t size = 0;
    while (size < rest_.size() && IsSpace(rest_[size])) ++size;
    rest_.remove_prefix(size);
  }
  std::string_view rest_;
};

std::string Shown(std::string_view word) {
  return word.size() <= kShownMax ? Quote(word) : StrCat(Quote(word.substr(0, kShownMax)), "...");
}

template <typename T>
bool Read(std::string_view word, T& value) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}

bool ReadFloat(std::string_view word, float& value) {
  if (Read(word, value)) return true;
  double wide = 0;  // a number too small for a float becomes 0; one that is too large is an error
  if (!Read(word, wide) || wide > 1 || wide < -1) return false;
  value = static_cast<float>(wide);
  return true;
}

bool ReadInteger(std::string_view word, std::uint64_t& value) {
  std::int64_t with_sign = 0;
  if (Read(word, value)) return true;
  if (!Read(word, with_sign)) return false;
  value = static_cast<std::uint64_t>(with_sign);
  return true;
}

template <typename T>
void AppendBytes(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Status ReadCount(Words& words, std::string_view what, std::uint64_t& count) {
  if (words.AtEnd())
    return InvalidArgument("E-dataset-count", what, ": the line ends where its count should stand");
  const std::string_view word = words.Next();
  if (Read(word, count) && count > 0) return OkStatus();
  return InvalidArgument("E-dataset-count", what, ": its count must be an integer from 1 on, not ",
                         Shown(word));
}

// Reads "1 <text>", which precedes the slots.
Status ReadText(Words& words, const char* what, std::string_view& text) {
  std::uint64_t count = 0;
  PENSTOCK_RETURN_IF_ERROR(ReadCount(words, StrCat("the ", what, " of the instance"), count));
  text = words.Next();
  if (count == 1 && !text.empty()) return OkStatus();
  return InvalidArgument("E-dataset-short", "the ", what,
                         " of the instance: the line must begin with 1 and the ", what);
}

// Reads the numbers of one slot and appends `kept` of them to the record.
Status ReadNumbers(const Slot& slot, bool drops_zeros, Words& words, std::uint64_t count, std::string& record,
                   std::uint32_t& kept) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (words.AtEnd()) {
      return InvalidArgument("E-dataset-short", "slot ", slot.name, ": its count is ", count,
                             ", but the line ends after ", i, " numbers");
    }
    const std::string_view word = words.Next();
    float real = 0;
    std::uint64_t whole = 0;
    if (slot.is_float ? !ReadFloat(word, real) : !ReadInteger(word, whole)) {
      return InvalidArgument("E-dataset-number", "slot ", slot.name, ": ", Shown(word), " is no ",
                             slot.is_float ? "number of type float32" : "integer of 64 bits");
    }
    if (!slot.used) continue;
    const bool zero = slot.is_float ? real < kFluidsZero && real > -kFluidsZero : whole == 0;
    if (drops_zeros && zero && !slot.dense) continue;
    if (slot.is_float) {
      AppendBytes(record, real);
    } else {
      AppendBytes(record, whole);
    }
    ++kept;
  }
  return OkStatus();
}

}  // namespace

Status CheckFormat(const Format& format) {
  std::set<std::string> names;
  bool used = false;
  for (const Slot& slot : format.slots) {
    if (!names.insert(slot.name).second)
      return InvalidArgument("E-dataset-slots", "dataset: the slot ", slot.name, " is there twice");
    used = used || slot.used;
    for (const Dim extent : slot.extents.dims()) {
      if (extent > 0) continue;
      return InvalidArgument(
          "E-dataset-slots", "dataset: the dense slot ", slot.name, " has instances of shape ", slot.extents,
          ", which says nothing of how many numbers they have; give ", "its extents, or a lod_level of 1");
    }
  }
  if (used) return OkStatus();
  return InvalidArgument("E-dataset-slots", "dataset: no slot is used; call set_use_var(variables) first");
}

Status Parser::Parse(std::string_view line, std::string& record, bool& rest) const {
  const std::size_t slots = format_.slots.size();
  record.assign(RecordView::HeadBytes(slots), '\0');
  Words words(line);
  std::string_view id;
  if (format_.has_ids) PENSTOCK_RETURN_IF_ERROR(ReadText(words, "id", id));
  if (std::string_view content; format_.has_contents) {
    PENSTOCK_RETURN_IF_ERROR(ReadText(words, "content", content));
  }
  for (std::size_t i = 0; i < slots; ++i) {
    const Slot& slot = format_.slots[i];
    std::uint64_t count = 0;
    PENSTOCK_RETURN_IF_ERROR(ReadCount(words, StrCat("slot ", slot.name), count));
    if (slot.used && slot.dense && count != static_cast<std::uint64_t>(slot.width())) {
      return InvalidArgument("E-dataset-width", "slot ", slot.name, ": its count is ", count,
                             ", but an instance of ", slot.extents, " has ", slot.width());
    }
    std::uint32_t kept = 0;
    PENSTOCK_RETURN_IF_ERROR(ReadNumbers(slot, format_.drops_zeros, words, count, record, kept));
    PutWord(record, 2 + i, kept);
  }
  rest = !words.AtEnd();
  record += id;
  PutWord(record, 0, record.size());
  PutWord(record, 1, id.size());
  return OkStatus();
}

}  // namespace penstock::dataset
