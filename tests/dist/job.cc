#include "tests/dist/job.h"

#include <algorithm>
#include <filesystem>
#include <random>

#include "framework/base/files.h"
#include "framework/ir/edit.h"
#include "framework/tensor/serialize.h"
#include "framework/wire/wire.h"
#include "tests/support/free_port.h"

namespace penstock::test {
namespace {

namespace fs = std::filesystem;

void WriteArrays(const fs::path& folder, const Arrays& arrays) {
  fs::create_directories(folder);
  for (const auto& [name, tensor] : arrays) {
    std::string bytes;
    AppendTensor(bytes, tensor);
    PENSTOCK_CHECK(WriteFile((folder / name).string(), bytes).ok(), name);
  }
}

Arrays ReadArrays(const fs::path& folder) {
  Arrays arrays;
  if (!fs::is_directory(folder)) return arrays;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string bytes = ReadFile(entry.path().string()).value();
    std::string_view left = bytes;
    Result<Tensor> tensor = ReadTensor(left);
    PENSTOCK_CHECK(tensor.ok(), entry.path().string());
    arrays[entry.path().filename().string()] = *std::move(tensor);
  }
  return arrays;
}

std::string AddressOf(const Program& pserver) {
  for (const OpEntry& entry : pserver.main().ops()) {
    if (entry.op->type() == "listen_and_serv") return entry.op->GetOr<std::string>("endpoint", "");
  }
  return "";
}

}  // namespace

Program WithAddresses(const Program& program, const std::map<std::string, std::string>& addresses) {
  const auto renamed = [&](const std::string& text) {
    const auto at = addresses.find(text);
    return at == addresses.end() ? text : at->second;
  };
  ProgramEdit edit(program);
  for (int block = 0; block < program.block_count(); ++block) {
    for (const OpEntry& entry : program.block(block).ops()) {
      Op op = *entry.op;
      for (const NamedAttr& attr : entry.op->attrs()) {
        if (const auto* text = std::get_if<std::string>(&attr.value)) {
          if (renamed(*text) != *text) op.Set(attr.name, renamed(*text));
        } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attr.value)) {
          std::vector<std::string> changed = *texts;
          std::transform(changed.begin(), changed.end(), changed.begin(), renamed);
          if (changed != *texts) op.Set(attr.name, changed);
        }
      }
      edit.block(block).Replace(entry.id, std::move(op));
    }
  }
  return edit.Apply().value();
}

Job::Job(std::vector<RolePrograms> trainers, std::vector<RolePrograms> pservers) {
  std::map<std::string, std::string> addresses;
  for (const RolePrograms& pserver : pservers) {
    addresses_.push_back(StrCat("127.0.0.1:", FreePort()));
    addresses[AddressOf(pserver.main)] = addresses_.back();
  }
  const auto add = [&](const RolePrograms& programs, std::vector<Role>& to) {
    Role& role = to.emplace_back();
    role.startup = WithAddresses(programs.startup, addresses);
    role.main = WithAddresses(programs.main, addresses);
  };
  for (const RolePrograms& programs : trainers) add(programs, trainers_);
  for (const RolePrograms& programs : pservers) add(programs, pservers_);
}

void Job::Prepare() {
  prepared_ = true;
  const auto write = [&](const Role& role, const std::string& name) {
    PENSTOCK_CHECK(WriteFile(folder_ / (name + ".main.pb"), SerializeProgram(role.main)).ok(), name);
    PENSTOCK_CHECK(WriteFile(folder_ / (name + ".startup.pb"), SerializeProgram(role.startup)).ok(), name);
    WriteArrays(folder_ / (name + ".values"), role.values);
    for (std::size_t step = 0; step < role.feeds.size(); ++step) {
      WriteArrays(fs::path(folder_ / (name + ".feeds")) / StrCat("s", step), role.feeds[step]);
    }
  };
  for (std::size_t i = 0; i < trainers_.size(); ++i) write(trainers_[i], StrCat("trainer", i));
  for (std::size_t i = 0; i < pservers_.size(); ++i) write(pservers_[i], StrCat("pserver", i));
}

std::vector<std::string> Job::Command(const Role& role, const std::string& name,
                                      const std::vector<std::string>& flags) const {
  std::vector<std::string> command = {PENSTOCK_ROLE_BINARY,
                                      "--startup=" + folder_ / (name + ".startup.pb"),
                                      "--main=" + folder_ / (name + ".main.pb"),
                                      "--values=" + folder_ / (name + ".values"),
                                      "--save=" + folder_ / (name + ".out"),
                                      "--job=test",
                                      "--token=" + token};
  if (!role.feeds.empty()) {
    command.push_back(StrCat("--steps=", role.feeds.size()));
    command.push_back("--feeds=" + folder_ / (name + ".feeds"));
    command.push_back("--fetches=" + Join(fetches, ","));
  }
  command.insert(command.end(), role.flags.begin(), role.flags.end());
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

Process& Job::Start(const Role& role, const std::string& name, const std::vector<std::string>& flags,
                    const std::string& as) {
  if (!prepared_) Prepare();
  std::unique_ptr<Process>& process = processes_[name + as];
  process.reset();
  process = std::make_unique<Process>(Command(role, name, flags), folder_ / (name + as + ".log"));
  return *process;
}

Process& Job::StartTrainer(int id, const std::vector<std::string>& flags) {
  return Start(trainer(id), StrCat("trainer", id), flags, "");
}

Process& Job::StartPserver(int index, const std::vector<std::string>& flags, const std::string& as) {
  return Start(pserver(index), StrCat("pserver", index), flags, as);
}

bool Job::Run(std::chrono::seconds limit, std::uint64_t seed) {
  std::vector<std::pair<bool, int>> order;
  for (std::size_t i = 0; i < pservers_.size(); ++i) order.emplace_back(true, static_cast<int>(i));
  for (std::size_t i = 0; i < trainers_.size(); ++i) order.emplace_back(false, static_cast<int>(i));
  std::mt19937_64 random(seed);
  if (seed != 0) std::shuffle(order.begin(), order.end(), random);
  for (const auto& [is_pserver, i] : order) {
    std::vector<std::string> flags;
    if (seed != 0) flags.push_back(StrCat("--delay_seed=", random() % 1'000'000 + 1));
    is_pserver ? StartPserver(i, flags) : StartTrainer(i, flags);
  }
  const auto end = std::chrono::steady_clock::now() + limit;
  bool good = true;
  for (auto& [name, process] : processes_) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    good = process->Wait(std::max(left, std::chrono::milliseconds(0))) == 0 && good;
  }
  return good;
}

Arrays Job::Final(int trainer) const { return ReadArrays(folder_ / StrCat("trainer", trainer, ".out")); }

Arrays Job::Served(int pserver) const { return ReadArrays(folder_ / StrCat("pserver", pserver, ".out")); }

Arrays Job::Fetched(int trainer, int step) const {
  return ReadArrays(fs::path(folder_ / StrCat("trainer", trainer, ".out")) / StrCat("s", step));
}

std::string Job::Logs() const {
  std::string text;
  for (const auto& [name, process] : processes_) {
    const std::optional<int> code = process->Wait(std::chrono::milliseconds(0));
    const std::string end = !code       ? "running"
                            : *code < 0 ? StrCat("signal ", -*code)
                                        : StrCat("exit code ", *code);
    text += StrCat("--- ", name, " (", end, ")\n", process->Log());
  }
  return text;
}

}  // namespace penstock::test
