// Runs role programs as a job of real processes on this machine: replaces their addresses by free ports, runs
// each role in its own process, and reads back the trainers' fetches and final variables.
//
//   Job job(RolesOf(folder, 2, 2));
//   job.pserver(0).values = {{"w", w}};
//   job.trainer(0).feeds = ...
//   ASSERT_TRUE(job.Run(60s));
//   job.Final(0).at("w")
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "tests/dist/process.h"
#include "tests/support/npz.h"
#include "tests/support/reference_job.h"
#include "tests/support/temp_dir.h"

namespace penstock::test {

struct Role {
  Program startup, main;
  Arrays values;                   // set after the startup program
  std::vector<Arrays> feeds;       // by step; only for trainers
  std::vector<std::string> flags;  // additional command-line flags of the process
};

class Job {
 public:
  Job(std::vector<RolePrograms> trainers, std::vector<RolePrograms> pservers);

  Role& trainer(int id) { return trainers_[static_cast<std::size_t>(id)]; }
  Role& pserver(int index) { return pservers_[static_cast<std::size_t>(index)]; }
  std::vector<std::string> fetches;
  std::string token = "a secret of this job";

  // Writes the input files of the processes, once.
  void Prepare();
  Process& StartTrainer(int id, const std::vector<std::string>& flags = {});
  // Starts a pserver under the name `as`. A second start under the same name kills the first process.
  Process& StartPserver(int index, const std::vector<std::string>& flags = {}, const std::string& as = "");
  // Starts all processes in an order chosen by `seed` (0: servers first) and waits for them. Returns false if
  // one failed or did not end within `limit`.
  bool Run(std::chrono::seconds limit, std::uint64_t seed = 0);

  Arrays Final(int trainer) const;   // the variables of a trainer when it ended
  Arrays Served(int pserver) const;  // the variables of a pserver when it ended
  Arrays Fetched(int trainer, int step) const;
  std::string Logs() const;  // of all processes, for failure messages
  const std::string& address(int pserver) const { return addresses_[static_cast<std::size_t>(pserver)]; }

 private:
  std::vector<std::string> Command(const Role& role, const std::string& name,
                                   const std::vector<std::string>& flags) const;
  Process& Start(const Role& role, const std::string& name, const std::vector<std::string>& flags,
                 const std::string& as);

  TempDir folder_;
  std::vector<Role> trainers_, pservers_;
  std::vector<std::string> addresses_;
  std::map<std::string, std::unique_ptr<Process>> processes_;
  bool prepared_ = false;
};

// Replaces each address in attributes that is a key of `addresses` by its value.
Program WithAddresses(const Program& program, const std::map<std::string, std::string>& addresses);

}  // namespace penstock::test
