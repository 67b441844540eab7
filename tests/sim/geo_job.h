// A geo-SGD job on the simulated network: servers add deltas, and trainers optimize locally with the
// communicator's geo mode. Records the deltas that servers received and the trainers' values after each step.
//
//   GeoJob job({.trainers = 2, .push_every = 3}, seed, {.lost = 0.1});
//   ASSERT_TRUE(job.Run().ok());
//   job.trainer(1).after[2].at("w")           // after its third step
//   job.chunks("w.1")                         // by first row: initial values and deltas on the server
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "executor/communicator/exchange_program.h"
#include "executor/communicator/trainer_parts.h"
#include "executor/pserver/pserver.h"
#include "executor/pserver/service/native_service.h"
#include "tests/sim/network.h"
#include "tests/sim/references/geo.h"
#include "tests/sim/sim_client.h"
#include "tests/sim/sim_ops.h"
#include "tests/sim/toy_job.h"
#include "tests/support/faulty_disk.h"

namespace penstock::test {

struct GeoSetup {
  int trainers = 2;
  int push_every = 1;
  std::vector<int> steps = {4, 4};  // by trainer
  // Checkpoints: exchanges from one to the next, and where they are.
  std::uint64_t checkpoint_every = 0;
  std::shared_ptr<FaultyDisk> disk = {};
  std::optional<std::uint64_t> resume = {};
  std::string run = "sim.0";
};

class GeoJob {
 public:
  struct Trainer {
    ToyValues start;               // received by its startup program
    std::size_t first_step = 0;    // with which it begins
    ToyValues begun;               // what it has before that step
    std::vector<ToyValues> after;  // by step
    Status status;
  };
  struct Chunk {
    std::vector<float> first;  // the server's initial values
    std::vector<GeoDelta> deltas;
  };

  GeoJob(GeoSetup setup, std::uint64_t seed, Faults faults);
  ~GeoJob();

  // The first error; E-sim-hang if the job did not end.
  Status Run();
  // All processes end after so many messages, or once a trainer has ended.
  Status RunUntilKilled(std::uint64_t messages);

  const GeoSetup& setup() const { return setup_; }
  const communicator::GeoSettings& settings() const { return settings_; }
  Trainer& trainer(int id) { return roles_[static_cast<std::size_t>(id)]->trainer; }
  // The chunks of a piece, by first row.
  const std::map<Dim, Chunk>& chunks(const std::string& piece) { return chunks_[piece]; }
  // The current values of rows of a piece.
  std::vector<float> RowsOnServer(const std::string& piece, Dim begin, std::size_t values) const;

  // The same when the servers began.
  std::vector<float> RestoredRows(const std::string& piece, Dim begin, std::size_t values) const;

  static Shape ShapeOf(const std::string& param);
  // Changes `values`, rows of the parameter from `begin` on, as a trainer's step does. Returns the rows of a
  // table that it touches, numbered as in the whole; of a dense parameter none.
  static std::vector<std::int64_t> TrainStep(const std::string& param, bool rows, int trainer,
                                             std::size_t step, Dim begin, std::vector<float>& values);

 private:
  struct Server {
    Program program;
    Scope scope;
    std::unique_ptr<pserver::Pserver> pserver;
    std::unique_ptr<pserver::NativeService> service;
    std::unique_ptr<Listener> listener;
  };
  struct Role {
    explicit Role(Network& net) : client(net.transport(), SimClient::OptionsOf(net), turn) {}
    Turn turn;
    SimClient client;
    Trainer trainer;
    std::thread thread;
    bool here = false, ended = false;
  };

  Program PserverProgram(int server) const;
  Program StartupOf(int trainer) const;
  void AddServer(int index);
  const Tensor* WholeOf(const std::string& piece) const;
  void Note(const Program& program, int block, Scope& scope);
  Status StartServers();
  void Start(int id, Role& role);
  Status Train(int id, Role& role);
  Status ReceiveStart(int id, Role& role, Scope& scope);
  ToyValues ValuesOf(const Scope& scope) const;
  void Tick(Role& role);
  Role* FindReady();
  bool AllEnded() const;
  Status Begin();
  communicator::PartOptions PartsOf() const;
  std::vector<float> RowsOf(const std::string& piece, std::span<const float> whole, Dim begin,
                            std::size_t values) const;

  const GeoSetup setup_;
  communicator::GeoSettings settings_;
  std::vector<std::string> addresses_ = {"ps0:1", "ps1:1"};
  Network net_;
  SimBlockRunner runner_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Role>> roles_;
  std::map<std::string, std::map<Dim, Chunk>> chunks_;
  std::map<std::string, std::vector<float>> restored_;  // by piece
};

}  // namespace penstock::test
