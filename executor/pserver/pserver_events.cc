// What a pserver does with each event of a trainer.
#include "executor/protocol/failure.h"
#include "executor/pserver/pserver.h"

namespace penstock::pserver {
namespace {

constexpr std::size_t kWaitsForMax = 300;  // characters of a trainer's report of what it waits for

// Cuts the text to `limit` bytes and replaces control characters by spaces.
std::string Printable(std::string text, std::size_t limit) {
  if (text.size() > limit) text.resize(limit);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

// Whether the event comes from an admitted trainer and must be handled. If not, its sender has been told
// why.
bool Pserver::IsOfTrainer(const From& from, const protocol::Event& event) {
  const auto known = trainer_of_.find(from.caller.get());
  if (known == trainer_of_.end() && std::holds_alternative<protocol::Failure>(event))
    return false;  // from a trainer that was turned away
  if (known == trainer_of_.end() || known->second != from.trainer ||
      admission_.incarnation(known->second) != from.sender.incarnation) {
    Refuse(from.caller, FailedPrecondition("E-rpc-hello", "a trainer's first message must be its hello"));
    return false;
  }
  NoteActivity(At(from.trainer), event);
  if (admission_.terms(from.trainer).Accepts(from.sender.contract)) return true;
  Refuse(from.caller, InvalidArgument("E-plan-mismatch", "plan: trainer ", from.trainer,
                                      " changed its plan while the job ran"));
  return false;
}

void Pserver::On(const From& from, const protocol::Push& push, Actions& actions) {
  const TrainerTerms& terms = admission_.terms(from.trainer);
  std::optional<int> param = terms.ParamOfPush(push.at.variable, from.sender.contract);
  // Of a key, whose values and gradients are different variables, too.
  const bool initial = !param && push.step == 0;
  if (initial) param = terms.ParamOfInitial(push.at.variable);
  if (initial && param && store_->IsTable(*param)) param.reset();
  if (!param) {
    Refuse(from.caller,
           InvalidArgument("E-rpc-variable", "trainer ", from.trainer, " pushed variable ", push.at.variable,
                           ", which is neither a gradient nor an initial value"));
    return;
  }
  At(from.trainer).worked = true;
  const std::uint64_t repeats = machine_->repeats();
  machine_->Push({.trainer = from.trainer,
                  .param = *param,
                  .chunk = static_cast<int>(push.at.chunk),
                  .step = push.step,
                  .part = push.part,
                  .bytes = push.bytes,
                  .rows = push.rows,
                  .initial = initial,
                  .largest = push.largest,
                  .threshold = push.threshold},
                 actions);
  if (machine_->repeats() > repeats) notes_.Repeated(from.trainer);
}

void Pserver::On(const From& from, const protocol::EndStep& end, Actions& actions) {
  At(from.trainer).worked = true;
  std::set<int> params;
  for (const std::uint32_t variable : end.variables) {
    if (const std::optional<int> param = admission_.terms(from.trainer).ParamOfGrad(variable))
      params.insert(*param);
  }
  notes_.StepEnded(from.trainer, end.step, options_.clock->Now());
  machine_->EndStep(from.trainer, end.step, params, actions);
}

void Pserver::On(const From& from, const protocol::CountStep& count, Actions& actions) {
  At(from.trainer).worked = true;
  machine_->CountStep(from.trainer, count.step, actions);
}

void Pserver::On(const From& from, const protocol::Pull& pull, Actions& actions) {
  const std::optional<int> param = admission_.terms(from.trainer).ParamOfPull(pull.at.variable);
  if (!param || store_->IsTable(*param)) {
    Refuse(from.caller, InvalidArgument("E-rpc-variable", "trainer ", from.trainer, " pulled variable ",
                                        pull.at.variable, ", which is no parameter"));
    return;
  }
  machine_->Pull(from.trainer, *param, static_cast<int>(pull.at.chunk), pull.version, actions);
}

void Pserver::On(const From& from, const protocol::PullRows& pull, Actions& actions) {
  const TrainerTerms& terms = admission_.terms(from.trainer);
  const std::optional<int> param = terms.ParamOfTable(pull.at.variable);
  if (!param) {
    Refuse(from.caller,
           InvalidArgument("E-rpc-variable", "trainer ", from.trainer, " asked for rows of variable ",
                           pull.at.variable, ", which is no table"));
    return;
  }
  if (const Status fit = store_->CheckIds(*param, from.trainer, from.row_ids); !fit.ok())
    return Refuse(from.caller, fit);
  machine_->PullRows({.trainer = from.trainer,
                      .param = *param,
                      .chunk = static_cast<int>(pull.at.chunk),
                      .version = pull.version,
                      .variable = pull.at.variable,
                      .request = pull.request,
                      .padding = terms.PaddingOf(pull.at.variable),
                      .ids = from.row_ids},
                     actions);
}

void Pserver::On(const From& from, const protocol::PullChanged& pull, Actions& actions) {
  const std::optional<int> param = admission_.terms(from.trainer).ParamOfPull(pull.variable);
  if (!param || !store_->NotesChanges(*param)) {
    Refuse(from.caller, InvalidArgument("E-rpc-variable", "trainer ", from.trainer,
                                        " asked for the changed rows of variable ", pull.variable,
                                        ", which is no table of geo-SGD"));
    return;
  }
  machine_->PullRows({.trainer = from.trainer,
                      .param = *param,
                      .version = pull.version,
                      .variable = pull.variable,
                      .request = pull.version,
                      .changed = true},
                     actions);
}

void Pserver::On(const From& from, const protocol::Save& save, Actions& actions) {
  const auto refuse = [&](Status why) {  // tells the trainer, which may continue
    SendTo(from.trainer,
           protocol::Saved{save.request, std::move(why).In(StrCat("pserver ", facts_.address))});
  };
  if (from.trainer != 0) {
    return refuse(FailedPrecondition("E-server-save-trainer", "trainer ", from.trainer, " asks it to save ",
                                     save.body.table, "; only trainer 0 may"));
  }
  const int table = store_->FindTable(save.body.table);
  const int param = table >= 0 ? table : store_->FindUpdated(save.body.table);
  if (param < 0) {
    return refuse(InvalidArgument("E-server-save", "it holds no table ", save.body.table,
                                  " sharded by id, and no slice of a parameter of this name"));
  }
  Result<std::string> file = saves_.Claim(save.body.file);
  if (!file.ok()) return refuse(std::move(file).status());
  if (table >= 0) {
    const Result<std::string> state = saves_.Claim(ChunkStore::StateFileOf(save.body.file));
    if (!state.ok()) return refuse(state.status());
  }
  machine_->Save({.trainer = from.trainer,
                  .param = param,
                  .version = save.version,
                  .request = save.request,
                  .file = *std::move(file)},
                 actions);
}

void Pserver::On(const From& from, const protocol::Ask& ask, Actions&) {
  Trainer& trainer = At(from.trainer);
  trainer.waits_for = Printable(ask.waits_for, kWaitsForMax);
  if (!ask.about) return;
  const TrainerTerms& terms = admission_.terms(from.trainer);
  const auto [variable, chunk] = *ask.about;
  std::optional<int> param = terms.ParamOfPull(variable);
  if (!param) param = terms.ParamOfTable(variable);
  if (!param) param = terms.ParamOfGrad(variable);
  if (!param || chunk >= store_->chunk_count(*param)) return;
  SendTo(from.trainer,
         protocol::Answer{.at = *ask.about,
                          .step = ask.step,
                          .welcome_below = machine_->credit(*param, static_cast<int>(chunk), from.trainer),
                          .lacking = Lacking(*param, static_cast<int>(chunk))});
}

void Pserver::On(const From& from, const protocol::Sums&, Actions&) {
  Refuse(from.caller, FailedPrecondition("E-rpc-hello", "trainer ", from.trainer,
                                         " sent sums, which only pservers send to each other"));
}

void Pserver::On(const From& from, const protocol::Complete&, Actions& actions) {
  At(from.trainer).worked = true;
  machine_->Complete(from.trainer, actions);
  if (ServesKeys()) EndBarriers();
}

// The trainer has failed, and sends the reason before it leaves.
void Pserver::On(const From& from, const protocol::Failure& failure, Actions& actions) {
  if (Forget(from.trainer)) return;
  // Another server has its new process already, which comes here too; or has ended, because the others have
  // completed there.
  const bool replaced = options_.trainer_loss != TrainerLoss::kAbort && failure.why.id() == "E-rpc-fenced";
  const bool left_out = options_.trainer_loss == TrainerLoss::kShrink && failure.why.id() == "E-peer-lost";
  if (replaced || left_out)
    return Lose(from.trainer, std::string(failure.why.message()), failure.why, actions);
  React(from.trainer, protocol::FailureOf(StrCat("trainer ", from.trainer), failure.why), actions);
}

}  // namespace penstock::pserver
