// penstock top: shows live figures of a running job from the /metrics of its processes.
#include <gflags/gflags.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>

#include "framework/base/strings.h"
#include "tools/command.h"
#include "tools/metrics.h"

DEFINE_bool(once, false, "print one table and exit; rates are averages since the processes started");
DEFINE_double(every_s, 2, "seconds between two tables");

namespace penstock::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPatience{2000};

// The addresses in the files metrics.<role>, which the roles have written to the log folder.
std::vector<std::string> AddressesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (StartsWith(name, "metrics.") && name.find(".part") == std::string::npos)
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> addresses;
  for (const fs::path& file : files) {
    std::ifstream opened(file);
    std::string address;
    if (std::getline(opened, address) && !address.empty()) addresses.push_back(address);
  }
  return addresses;
}

std::vector<TopRow> Look(const Arguments& arguments) {
  std::vector<TopRow> rows;
  for (const std::string& argument : arguments) {
    std::error_code none;
    const bool is_folder = fs::is_directory(argument, none);
    const std::vector<std::string> found =
        is_folder ? AddressesIn(argument) : std::vector<std::string>{argument};
    for (const std::string& address : found) {
      TopRow& row = rows.emplace_back(TopRow{.address = address, .sample = {}});
      const Result<std::string> text = FetchMetrics(address, kPatience);
      if (!text.ok()) continue;
      if (Result<Sample> sample = ReadMetrics(*text); sample.ok()) row.sample = *std::move(sample);
    }
  }
  return rows;
}

bool AnyAnswers(const std::vector<TopRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const TopRow& row) { return !row.sample.role.empty(); });
}

}  // namespace

int RunTop(const Arguments& arguments) {
  if (arguments.empty()) return BadUsage("top", "DIR | HOST:PORT ...");
  std::vector<TopRow> before, now = Look(arguments);
  if (!AnyAnswers(now)) {
    return BadInput(Unavailable("E-top-nobody", "no process of the job answers at ", Join(arguments, ", "),
                                "; start it with --metrics 0, and give its log folder"));
  }
  std::cout << TopTable(now, {}) << std::flush;
  std::mutex mutex;
  std::condition_variable never;
  const std::chrono::duration<double> every(std::clamp(FLAGS_every_s, 0.1, 3600.0));
  while (!FLAGS_once && AnyAnswers(now)) {
    std::unique_lock lock(mutex);
    never.wait_for(lock, every, [] { return false; });
    before = std::move(now);
    now = Look(arguments);
    std::cout << "\033[H\033[2J" << TopTable(now, before) << std::flush;  // home, clear the screen
  }
  return kExitOk;
}

}  // namespace penstock::tools
