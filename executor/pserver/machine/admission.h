// Decides who may be a trainer of a pserver: the contracts that each must have, whether a hello matches, and
// who has come so far.
//
//   Admission admission(facts, "my job");
//   PENSTOCK_RETURN_IF_ERROR(admission.Check(sender, hello.body));
//   admission.Admit(sender, hello.body);
//   admission.Awaited();                       // {0}: of two trainers the first has not come yet
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/protocol/bodies.h"
#include "executor/protocol/contract.h"
#include "executor/protocol/events.h"

namespace penstock::pserver {

// The contract that one trainer must have, and its numbers for variables: positions in the contract.
class TrainerTerms {
 public:
  TrainerTerms(const roles::PserverFacts& facts, int trainer, const protocol::RowUses& uses = {});

  const protocol::Contract& contract() const { return contract_; }
  // Its startup program knows a part of the contract, its main program all of it.
  bool Accepts(std::uint64_t hash) const {
    return hash == hash_ || hash == startup_hash_ || hash == without_grads_hash_;
  }
  std::uint64_t hash() const { return hash_; }
  // The next param, which was added while the job runs, is a key: its value and its gradient are the next two
  // variables.
  void AddKey();

  // The param that each variable is, or whose gradient it is.
  const std::vector<int>& params_of_variables() const { return param_of_; }
  std::optional<int> ParamOfGrad(std::uint32_t variable) const;   // nullopt if it is no gradient
  std::optional<int> ParamOfPull(std::uint32_t variable) const;   // nullopt if it is no param
  std::optional<int> ParamOfTable(std::uint32_t variable) const;  // nullopt if it is no table
  // Of a request for rows: the id whose row is all zeros; -1: none.
  std::int64_t PaddingOf(std::uint32_t variable) const { return padding_of_[variable]; }
  // The param for which the trainer may push the variable under the contract of that hash: its gradient, or
  // the initial value if this trainer sends it. nullopt if the trainer may not push it.
  std::optional<int> ParamOfPush(std::uint32_t variable, std::uint64_t contract) const;
  // The param for which the trainer may set a value before its first step: one that it receives, or of which
  // it requests rows. nullopt if it is neither, or if it is held only, or sharded by id.
  std::optional<int> ParamOfInitial(std::uint32_t variable) const;
  // The variable of the param itself (a table sharded by id has none), and the variable that the trainer
  // pushes for it.
  std::uint32_t VariableOf(int param) const { return variable_of_[static_cast<std::size_t>(param)]; }
  std::uint32_t PushedFor(int param) const { return pushed_for_[static_cast<std::size_t>(param)]; }

 private:
  protocol::Contract contract_;
  std::uint64_t startup_hash_ = 0, without_grads_hash_ = 0, hash_ = 0;
  bool IsKey(std::uint32_t variable) const {
    return variable >= contract_.variable_count() && variable < param_of_.size();
  }
  bool IsGradientOfKey(std::uint32_t variable) const {
    return IsKey(variable) && (variable - contract_.variable_count()) % 2 == 1;
  }

  std::vector<int> param_of_;
  std::vector<std::int64_t> padding_of_;
  std::vector<std::uint32_t> variable_of_, pushed_for_;
};

// Not thread-safe.
class Admission {
 public:
  Admission(const roles::PserverFacts& facts, std::string job);

  std::uint64_t job_hash() const { return job_hash_; }
  // The terms under which the trainer came last.
  const TrainerTerms& terms(int trainer) const { return At(trainer).terms; }

  // Ok if the hello is from a trainer of this job that may take part, for the first time or again. Otherwise
  // the reason: E-rpc-job, E-plan-trainers, E-plan-trainer-id, E-plan-mismatch, E-job-mismatch (the same
  // messages, but another program or configuration), E-rpc-fenced (an older process of that trainer),
  // E-rpc-restart (a newer one, unless `may_return`).
  Status Check(const protocol::Sender& sender, const protocol::HelloBody& hello,
               bool may_return = false) const;
  static Status Fenced(int trainer);  // E-rpc-fenced
  // Whether the sender is a newer process of a trainer that was admitted.
  bool Returns(const protocol::Sender& sender) const {
    const Trainer& known = At(static_cast<int>(sender.trainer));
    return known.incarnation && sender.incarnation > *known.incarnation;
  }

  // After Check, with the same hello. A trainer may come again with another contract: its programs become
  // known one by one, and each may use more tables.
  void Admit(const protocol::Sender& sender, const protocol::HelloBody& hello);
  // Forgets an admitted trainer, which may then come again.
  void Release(int trainer) { At(trainer).incarnation.reset(); }
  // TrainerTerms::AddKey of all trainers.
  void AddKey();
  // A trainer with this id was refused: it is not waited for.
  void TurnAway(int trainer) { At(trainer).turned_away = true; }
  bool Admitted(int trainer) const { return At(trainer).incarnation.has_value(); }
  // Of an admitted trainer.
  std::uint64_t incarnation(int trainer) const { return *At(trainer).incarnation; }
  // Trainers that have been neither admitted nor turned away.
  std::vector<int> Awaited() const;

 private:
  struct Trainer {
    TrainerTerms terms;
    std::optional<std::uint64_t> incarnation;
    bool turned_away = false;
  };
  // The terms under which the trainer may come with this hello; nullopt: there are none.
  std::optional<TrainerTerms> TermsFor(const protocol::Sender& sender,
                                       const protocol::HelloBody& hello) const;
  Status CheckContract(const protocol::Sender& sender, const protocol::HelloBody& hello) const;
  Status CheckJobFacts(const protocol::Sender& sender, const protocol::HelloBody& hello) const;
  const Trainer& At(int trainer) const { return trainers_[static_cast<std::size_t>(trainer)]; }
  Trainer& At(int trainer) { return trainers_[static_cast<std::size_t>(trainer)]; }

  const roles::PserverFacts facts_;
  const std::string& address_ = facts_.address;
  const std::string job_;
  const std::uint64_t job_hash_;
  std::vector<Trainer> trainers_;
};

}  // namespace penstock::pserver
