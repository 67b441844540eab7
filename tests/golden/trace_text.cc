#include "tests/golden/trace_text.h"

#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include "framework/base/strings.h"

namespace penstock::test {
namespace {

using trace::Event;
using trace::EventKind;

std::int64_t NumberIn(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

trace::NameId NameIn(trace::ProcessTrace& process, const std::string& name) {
  if (name.empty() || name == "-") return 0;
  if (process.names.empty()) process.names.push_back('\0');
  const auto id = static_cast<trace::NameId>(process.names.size());
  process.names.push_back(static_cast<char>(name.size()));
  process.names.push_back('\0');
  process.names += name;
  return id;
}

// The same text has the same id within a process.
trace::NameId Interned(trace::ProcessTrace& process, const std::string& name) {
  for (const trace::Lane& lane : process.lanes) {
    for (const Event& event : lane.events) {
      for (const trace::NameId id : {event.name, event.peer}) {
        if (id != 0 && process.Name(id) == name) return id;
      }
    }
  }
  return NameIn(process, name);
}

std::optional<EventKind> KindNamed(const std::string& name) {
  for (int kind = 1; kind <= static_cast<int>(trace::kLastKind); ++kind) {
    if (name == trace::NameOf(static_cast<EventKind>(kind))) return static_cast<EventKind>(kind);
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<trace::ProcessTrace>> ParseTraces(const std::string& text) {
  std::vector<trace::ProcessTrace> job;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> words;
    std::string word;
    bool quoted = false;
    for (const char c : line + " ") {
      if (c == '\'') quoted = !quoted;
      if (c == ' ' && !quoted && !word.empty()) words.push_back(std::exchange(word, {}));
      if (c != '\'' && (c != ' ' || quoted)) word.push_back(c);
    }
    if (words.empty()) continue;
    const auto fact = [&](const std::string& key) -> std::string {
      for (const std::string& one : words) {
        if (StartsWith(one, key + "=")) return one.substr(key.size() + 1);
      }
      return "";
    };
    if (words[0] == "process") {
      trace::ProcessTrace& process = job.emplace_back();
      process.role = words.at(1) == "-" ? "" : words[1];
      process.pid = NumberIn(fact("pid"));
      process.host = static_cast<std::uint64_t>(NumberIn(fact("host")));
      process.wall_ns = NumberIn(fact("wall"));
    } else if (words[0] == "thread") {
      job.back().lanes.emplace_back().thread = NumberIn(words.at(1));
    } else if (const auto kind = KindNamed(words[0]); kind && words.size() > 3) {
      trace::ProcessTrace& process = job.back();
      const Event event{.begin_ns = NumberIn(words[1]),
                        .end_ns = NumberIn(words[2]),
                        .name = Interned(process, words[3]),
                        .peer = Interned(process, fact("peer")),
                        .flow = static_cast<std::uint64_t>(NumberIn(fact("flow"))),
                        .step = static_cast<std::uint64_t>(NumberIn(fact("step"))),
                        .bytes = static_cast<std::uint64_t>(NumberIn(fact("bytes"))),
                        .at = static_cast<std::uint32_t>(NumberIn(fact("at"))),
                        .of = static_cast<std::uint32_t>(NumberIn(fact("of"))),
                        .kind = *kind};
      process.lanes.back().events.push_back(event);
    } else {
      return InvalidArgument("E-golden", "trace: ", line);
    }
  }
  return job;
}

}  // namespace penstock::test
