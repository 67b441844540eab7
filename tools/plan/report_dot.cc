// The report as a graph for Graphviz: the traffic between processes.
#include <algorithm>

#include "framework/base/strings.h"
#include "tools/plan/numbers.h"
#include "tools/plan/report.h"

namespace penstock::tools {
namespace {

// More trainers than this are drawn as one node.
constexpr int kTrainersDrawn = 8;

// A quoted string of the dot language, one line per element of `lines`.
std::string Label(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) {
    if (!out.empty()) out += "\\n";
    for (const char c : line) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return StrCat("\"", out, "\"");
}

std::string VolumeText(const cost::Volume& volume) {
  return StrCat(Count(volume.messages, "message"), ", ", Size(volume.bytes));
}

class Picture {
 public:
  explicit Picture(const JobReport& report) : report_(report), job_(report.job), cost_(report.cost) {}

  std::string Draw() {
    out_ = "digraph job {\n  rankdir=LR;\n  node [shape=box];\n";
    out_ += StrCat(
        "  label=",
        Label({StrCat(cost::ExchangeName(job_.exchange), ", payload in ", ExchangeWords(report_))}), ";\n");
    DrawTrainers();
    if (job_.pservers.empty()) {
      DrawRing();
    } else {
      DrawPservers();
      DrawEdges();
    }
    return out_ + "}\n";
  }

 private:
  bool Drawn() const { return job_.trainers <= kTrainersDrawn; }
  int Nodes() const { return Drawn() ? job_.trainers : 1; }
  // The cost of the trainer that a node represents.
  const cost::TrainerCost& TrainerOf(int node) const {
    const auto index = static_cast<std::size_t>(node);
    return cost_.trainers[Drawn() && index < cost_.trainers.size() ? index : 0];
  }

  void DrawTrainers() {
    out_ += StrCat("  subgraph cluster_trainers {\n    label=",
                   Label({job_.pservers.empty() ? "ranks" : "trainers"}), ";\n");
    for (int i = 0; i < Nodes(); ++i) {
      const cost::JobMemory& memory = TrainerOf(i).memory;
      const std::string name = Drawn() ? StrCat(job_.pservers.empty() ? "rank " : "trainer ", i)
                                       : StrCat("each of ", Count(job_.trainers, "trainer"));
      const std::int64_t bytes = memory.parameters + memory.gradients + memory.optimizer_state;
      out_ +=
          StrCat("    trainer_", i,
                 " [label=", Label({name, StrCat(Size(bytes), " of parameters, gradients, state")}), "];\n");
    }
    out_ += "  }\n";
  }

  void DrawPservers() {
    out_ += StrCat("  subgraph cluster_pservers {\n    label=", Label({"pservers"}), ";\n");
    for (std::size_t i = 0; i < cost_.pservers.size(); ++i) {
      const cost::PserverCost& pserver = cost_.pservers[i];
      out_ += StrCat("    pserver_", i, " [label=",
                     Label({StrCat("pserver ", i), pserver.address,
                            StrCat(Count(pserver.pieces, "piece"), ", ", Size(pserver.parameter_bytes)),
                            StrCat("in all ", Size(pserver.TotalBytes()))}),
                     "];\n");
    }
    out_ += "  }\n";
  }

  void DrawEdges() {
    for (int i = 0; i < Nodes(); ++i) {
      const std::vector<cost::Traffic>& to = TrainerOf(i).to;
      for (std::size_t p = 0; p < to.size(); ++p) {
        Edge(StrCat("trainer_", i), StrCat("pserver_", p), to[p].up);
        Edge(StrCat("pserver_", p), StrCat("trainer_", i), to[p].down);
      }
    }
  }

  void Edge(const std::string& from, const std::string& to, const cost::Volume& volume) {
    if (volume.messages == 0) return;
    out_ += StrCat("  ", from, " -> ", to, " [label=", Label({VolumeText(volume)}), "];\n");
  }

  // Each rank of the ring sends to the next; inside a host, all ranks send to the first, which sends back.
  void DrawRing() {
    const int per_host = std::max(1, Drawn() ? job_.ranks_per_host : 1);
    for (int i = 0; i < Nodes(); ++i) {
      const int first = i / per_host * per_host;
      if (i != first) {
        Edge(StrCat("trainer_", i), StrCat("trainer_", first), TrainerOf(i).inside_host);
        Edge(StrCat("trainer_", first), StrCat("trainer_", i), TrainerOf(i).inside_host);
      } else {
        Edge(StrCat("trainer_", i), StrCat("trainer_", (i + per_host) % Nodes()), TrainerOf(i).ring);
      }
    }
  }

  const JobReport& report_;
  const cost::Job& job_;
  const cost::CostReport& cost_;
  std::string out_;
};

}  // namespace

std::string ReportDot(const JobReport& report) { return Picture(report).Draw(); }

}  // namespace penstock::tools
