#include "tools/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "framework/base/strings.h"

namespace penstock::tools {
namespace {

constexpr std::size_t kAnswerMax = std::size_t{4} << 20;

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

std::optional<sockaddr_in> AddressOf(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  int port = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + colon + 1, end, port);
  std::string host = text.substr(0, colon);
  if (host == "localhost") host = "127.0.0.1";
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool is_port = error == std::errc() && at == end && port > 0 && port <= 65535;
  if (!is_port || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return std::nullopt;
  return address;
}

std::string Fixed(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Size(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return StrCat(Fixed(bytes, unit == 0 ? "%.0f" : "%.1f"), " ", kUnits[unit]);
}

// One sample line: a name, labels, a value.
struct Line {
  std::string_view name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

// Takes a quoted string from the front of `text` and returns it unescaped.
std::optional<std::string> TakeQuoted(std::string_view& text) {
  std::string out;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '"') {
      text.remove_prefix(at + 1);
      return out;
    }
    const bool escaped = text[at] == '\\' && at + 1 < text.size();
    if (escaped) ++at;
    out += escaped && text[at] == 'n' ? '\n' : text[at];
  }
  return std::nullopt;
}

std::optional<Line> ReadLine(std::string_view text) {
  Line line;
  const std::size_t name_end = text.find_first_of("{ ");
  if (name_end == std::string_view::npos || name_end == 0) return std::nullopt;
  line.name = text.substr(0, name_end);
  text.remove_prefix(name_end);
  if (text.front() == '{') {
    text.remove_prefix(1);
    while (!text.empty() && text.front() != '}') {
      const std::size_t equals = text.find("=\"");
      if (equals == std::string_view::npos) return std::nullopt;
      const std::string label(text.substr(0, equals));
      text.remove_prefix(equals + 1);
      std::optional<std::string> value = TakeQuoted(text);
      if (!value) return std::nullopt;
      line.labels[label] = *std::move(value);
      if (!text.empty() && text.front() == ',') text.remove_prefix(1);
    }
    if (text.empty()) return std::nullopt;
    text.remove_prefix(1);
  }
  const std::string number(text);
  char* end = nullptr;
  line.value = std::strtod(number.c_str(), &end);
  if (number.size() < 2 || number[0] != ' ' || *end != '\0') return std::nullopt;
  return line;
}

double ValueOf(const Sample& sample, const char* family) {
  const auto found = sample.values.find(family);
  return found == sample.values.end() ? 0 : found->second;
}

std::vector<std::string> CellsOf(const TopRow& row, const Sample* before) {
  const Sample& now = row.sample;
  if (now.role.empty()) return {row.address, "does not answer", "", "", "", "", "", "", ""};
  const auto since = [&](const char* family) {
    return ValueOf(now, family) - (before == nullptr ? 0 : ValueOf(*before, family));
  };
  const double seconds = std::max(since("penstock_up_seconds"), 1e-9);
  std::string most = "-";
  double longest = 0;
  for (const auto& [peer, waited] : now.waited_by_peer) {
    const auto earlier = before == nullptr ? now.waited_by_peer.end() : before->waited_by_peer.find(peer);
    const bool known = before != nullptr && earlier != before->waited_by_peer.end();
    const double more = waited - (known ? earlier->second : 0);
    if (more <= longest) continue;
    longest = more;
    most = StrCat(peer, " ", Fixed(more, "%.1f"), " s");
  }
  const double stale = ValueOf(now, "penstock_staleness_updates_count");
  return {now.role,
          Fixed(ValueOf(now, "penstock_steps_total"), "%.0f"),
          Fixed(since("penstock_steps_total") / seconds, "%.1f"),
          StrCat(Size(since("penstock_sent_bytes_total") / seconds), "/s"),
          StrCat(Size(since("penstock_received_bytes_total") / seconds), "/s"),
          StrCat(Fixed(100 * since("penstock_exposed_seconds_total") / seconds, "%.0f"), "%"),
          most,
          StrCat(Fixed(now.silent_longest_s, "%.1f"), " s"),
          stale == 0 ? "-" : Fixed(ValueOf(now, "penstock_staleness_updates_sum") / stale, "%.2f")};
}

}  // namespace

Result<std::string> FetchMetrics(const std::string& address, std::chrono::milliseconds limit) {
  const auto failed = [&](const char* what) {
    return Unavailable("E-top-fetch", "no metrics from ", address, ": ", what);
  };
  const std::optional<sockaddr_in> to = AddressOf(address);
  if (!to) return failed("it is no host:port");
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto ready = [&](short events) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd one{socket.descriptor(), events, 0};
    return left.count() > 0 && poll(&one, 1, static_cast<int>(left.count())) == 1;
  };
  (void)connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&*to), sizeof *to);
  const std::string request = StrCat("GET /metrics HTTP/1.1\r\nHost: ", address, "\r\n\r\n");
  if (!ready(POLLOUT) || send(socket.descriptor(), request.data(), request.size(), MSG_NOSIGNAL) !=
                             static_cast<ssize_t>(request.size())) {
    return failed("nobody listens there");
  }
  std::string answer;
  char bytes[8192];
  while (ready(POLLIN)) {
    const ssize_t got = recv(socket.descriptor(), bytes, sizeof bytes, 0);
    if (got < 0) return failed("the connection broke");
    if (got > 0) answer.append(bytes, static_cast<std::size_t>(got));
    if (got > 0 && answer.size() < kAnswerMax) continue;
    const std::size_t body = answer.find("\r\n\r\n");
    if (!StartsWith(answer, "HTTP/1.1 200 ") || body == std::string::npos)
      return failed("what answers there has none");
    return answer.substr(body + 4);
  }
  return failed("it did not answer in time");
}

Result<Sample> ReadMetrics(std::string_view text) {
  Sample sample;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.empty() || one.front() == '#') continue;
    const std::optional<Line> line = ReadLine(one);
    if (!line) return DataLoss("E-top-format", "a line of the metrics is no sample: ", Quote(one));
    const auto role = line->labels.find("role");
    if (role != line->labels.end()) sample.role = role->second;
    const auto peer = line->labels.find("peer");
    if (line->name == "penstock_waited_seconds_total" && peer != line->labels.end())
      sample.waited_by_peer[peer->second] = line->value;
    if (line->name == "penstock_peer_silent_seconds")
      sample.silent_longest_s = std::max(sample.silent_longest_s, line->value);
    sample.values[std::string(line->name)] += line->value;
  }
  return sample;
}

std::string TopTable(const std::vector<TopRow>& rows, const std::vector<TopRow>& before) {
  std::vector<std::vector<std::string>> cells = {
      {"role", "steps", "steps/s", "sent", "received", "exposed", "waited most for", "silent", "staleness"}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool known = i < before.size() && before[i].sample.role == rows[i].sample.role;
    cells.push_back(CellsOf(rows[i], known ? &before[i].sample : nullptr));
  }
  std::vector<std::size_t> widths(cells.front().size(), 0);
  for (const auto& row : cells) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += StrCat(row[c], std::string(widths[c] + 2 - row[c].size(), ' '));
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace penstock::tools
