#include "executor/collective/rendezvous/devices.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>

namespace penstock::rendezvous {
namespace {

std::vector<std::string> Listed(const std::string& text) {
  std::vector<std::string> entries;
  for (const std::string& entry : Split(text, ',')) entries.emplace_back(StripSpace(entry));
  return entries;
}

std::optional<int> Ordinal(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// Like CUDA, ignores the first invalid entry and all entries after it.
std::vector<std::string> Visible(const std::string& text) {
  std::vector<std::string> entries = Listed(text);
  const auto none = std::find_if(entries.begin(), entries.end(), [](const std::string& entry) {
    return entry.empty() || entry.front() == '-';
  });
  entries.erase(none, entries.end());
  return entries;
}

}  // namespace

Result<std::optional<std::vector<ChosenDevice>>> ChooseDevices(const Environment& environment) {
  const std::string visible_text = environment("CUDA_VISIBLE_DEVICES");
  const std::string selected = environment("FLAGS_selected_gpus");
  if (visible_text.empty() && selected.empty()) return std::optional<std::vector<ChosenDevice>>();
  const std::vector<std::string> visible = Visible(visible_text);
  std::vector<ChosenDevice> devices;
  if (selected.empty()) {
    for (const std::string& name : visible) devices.push_back({static_cast<int>(devices.size()), name});
    return std::optional(std::move(devices));
  }
  std::set<int> seen;
  for (const std::string& entry : Listed(selected)) {
    const std::optional<int> ordinal = Ordinal(entry);
    if (!ordinal) {
      return InvalidArgument("E-rendezvous-device", "FLAGS_selected_gpus=", selected, ": ", Quote(entry),
                             " is no device's number");
    }
    if (!visible_text.empty() && *ordinal >= static_cast<int>(visible.size())) {
      return InvalidArgument("E-rendezvous-device", "FLAGS_selected_gpus=", selected, ": device ", *ordinal,
                             " is out of range; CUDA_VISIBLE_DEVICES=", visible_text, " shows ",
                             visible.size());
    }
    if (!seen.insert(*ordinal).second) {
      return InvalidArgument("E-rendezvous-device", "FLAGS_selected_gpus=", selected, ": device ", *ordinal,
                             " is listed twice");
    }
    devices.push_back({*ordinal, visible_text.empty() ? entry : visible[static_cast<std::size_t>(*ordinal)]});
  }
  return std::optional(std::move(devices));
}

Result<int> DeviceOfRank(const Environment& environment, int place, int visible) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto chosen, ChooseDevices(environment));
  std::vector<int> usable;
  for (int ordinal = 0; !chosen && ordinal < visible; ++ordinal) usable.push_back(ordinal);
  if (chosen) {
    for (const ChosenDevice& device : *chosen) usable.push_back(device.ordinal);
  }
  for (const int ordinal : usable) {
    if (ordinal < visible) continue;
    return InvalidArgument("E-rendezvous-device", "device ", ordinal, " is chosen; this process sees ",
                           visible);
  }
  if (chosen && usable.size() == 1) return usable.front();
  if (place < static_cast<int>(usable.size())) return usable[static_cast<std::size_t>(place)];
  return InvalidArgument("E-rendezvous-device", "rank ", place, " of this host has no device: there are ",
                         usable.size());
}

}  // namespace penstock::rendezvous
