#include "executor/checkpoint/stop_request.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "executor/checkpoint/folder.h"

namespace penstock::checkpoint {
namespace {

// What a file says after the line that names the run; nullopt: it is not there, or of another run.
std::optional<std::string> TextOf(Disk& disk, const std::string& path, const std::string& run) {
  if (!disk.Exists(path)) return std::nullopt;
  const Result<std::string> text = disk.ReadWhole(path);
  if (!text.ok() || !text->starts_with(run + "\n")) return std::nullopt;
  return text->substr(run.size() + 1);
}

}  // namespace

Status StopRequest::Ask() {
  PENSTOCK_RETURN_IF_ERROR(disk_->MakeFolder(folder_));
  return ReplaceFile(*disk_, folder_ + "/request", run_ + "\n");
}

bool StopRequest::Asked() const { return TextOf(*disk_, folder_ + "/request", run_).has_value(); }

Status StopRequest::Answer(std::uint64_t step) {
  if (AnswerOf(server_).value_or(0) > step) return OkStatus();
  return ReplaceFile(*disk_, StrCat(folder_, "/", PartName(server_, servers_)),
                     StrCat(run_, "\n", step, "\n"));
}

std::optional<std::uint64_t> StopRequest::AnswerOf(int server) const {
  return StepIn(PartName(server, servers_));
}

std::optional<std::uint64_t> StopRequest::StepIn(const std::string& file) const {
  const std::optional<std::string> text = TextOf(*disk_, StrCat(folder_, "/", file), run_);
  if (!text) return std::nullopt;
  std::uint64_t step = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), step);
  return error == std::errc() && *end == '\n' ? std::optional(step) : std::nullopt;
}

std::optional<std::uint64_t> StopRequest::LastStep() const {
  std::uint64_t last = StepIn("least").value_or(0);
  for (int server = 0; server < servers_; ++server) {
    const std::optional<std::uint64_t> step = AnswerOf(server);
    if (!step) return std::nullopt;
    last = std::max(last, *step);
  }
  return last;
}

}  // namespace penstock::checkpoint
