// A job of real processes on this machine, from role programs: their addresses become free ports, each role
// runs as a process of its own, and what trainers fetched and ended with is read back.
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
  std::vector<Arrays> feeds;       // by step; a trainer's
  std::vector<std::string> flags;  // more of the process's flags
};

class Job {
 public:
  Job(std::vector<RolePrograms> trainers, std::vector<RolePrograms> pservers);

  Role& trainer(int id) { return trainers_[static_cast<std::size_t>(id)]; }
  Role& pserver(int index) { return pservers_[static_cast<std::size_t>(index)]; }
  std::vector<std::string> fetches;
  std::string token = "a secret of this job";

  // Writes what the processes need, once.
  void Prepare();
  Process& StartTrainer(int id, const std::vector<std::string>& flags = {});
  // A role may be started twice under different `as`; under the same, the first is killed.
  Process& StartPserver(int index, const std::vector<std::string>& flags = {}, const std::string& as = "");
  // Starts all in the order of `seed` (0: servers first) and waits for all; false if one failed or did not
  // end.
  bool Run(std::chrono::seconds limit, std::uint64_t seed = 0);

  Arrays Final(int trainer) const;   // the trainer's scope at its end
  Arrays Served(int pserver) const;  // the server's scope at its end
  Arrays Fetched(int trainer, int step) const;
  std::string Logs() const;  // of all processes, for failures
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

// Every address in attributes that is a key becomes its value.
Program WithAddresses(const Program& program, const std::map<std::string, std::string>& addresses);

}  // namespace penstock::test
