#include "executor/checkpoint/cut_request.h"

#include <charconv>
#include <string_view>

namespace penstock::checkpoint {

Status CutRequest::Ask() { return Of(Number() + 1).Ask(); }

std::uint64_t CutRequest::Number() const {
  const std::string path = StrCat(folder_, "/", kName, "/request");
  if (!disk_->Exists(path)) return 0;
  const Result<std::string> text = disk_->ReadWhole(path);
  const std::string before = run_ + " ";
  if (!text.ok() || !text->starts_with(before)) return 0;
  std::uint64_t number = 0;
  const auto [end, error] =
      std::from_chars(text->data() + before.size(), text->data() + text->size(), number);
  return error == std::errc() && std::string_view(end, text->data() + text->size()) == "\n" ? number : 0;
}

}  // namespace penstock::checkpoint
