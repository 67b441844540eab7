// Behaviour of a link that no simulated job shows.
#include "executor/client/link.h"

#include <gtest/gtest.h>

#include "tests/unit/client/sink_trainer.h"

namespace penstock::test {
namespace {

protocol::Event LastOf(const Sink& sink) { return protocol::DecodeEvent(sink.last).value().message; }

// Pushes and pulls declared under a small contract are sent with the numbers of the extended one.
TEST(Link, HandlesStayWhenTheContractGrows) {
  ToyJob small = SinkJob(1, 1), all = SinkJob(3, 1);
  small.params[0] = all.params[1];  // later it has one before it, and one after it
  SinkTransport transport;
  client::Session session(transport, {.job = "job"});
  ASSERT_TRUE(session.Attach(small.Trainer(0)).ok());
  const RemotePiece piece{.pserver = all.servers[0], .name = all.params[1].name};
  const PullHandle pull = session.DeclarePull(piece).value();
  RemotePiece grad = piece;
  grad.name = all.GradName(all.params[1], 0);
  const PushHandle push = session.DeclarePush(grad).value();
  const PeersHandle peers = session.DeclarePeers(all.servers).value();
  Tensor value(DType::kFp32, {2, 2}), out;
  ASSERT_TRUE(session.Push(push, value).ok());
  ASSERT_TRUE(session.EndStep(peers).ok());
  ASSERT_TRUE(session.Attach(all.Trainer(0)).ok());
  Sink& sink = *transport.sinks[0];
  const protocol::Contract contract =
      protocol::ReadTrainer(all.Trainer(0)).value().contracts.at(all.servers[0]);
  const protocol::Sender server{.contract = contract.Hash(), .incarnation = 1};
  transport.Deliver(
      0, protocol::Encode(
             server,
             protocol::Welcome{
                 .body = {.part_bytes = 1000, .window = 2, .chunk_rows = std::vector<std::uint64_t>(6, 2)}}));
  EXPECT_EQ(std::get<protocol::EndStep>(LastOf(sink)).variables, (std::vector<std::uint32_t>{4}));
  ASSERT_TRUE(session.Pull(pull, out).ok());
  EXPECT_EQ(std::get<protocol::Pull>(LastOf(sink)).at.variable, 1u);
  value.Span<float>()[3] = 7;
  transport.Deliver(
      0, protocol::Encode(server,
                          protocol::Pulled{.at = {1, 0}, .version = 1, .bytes = Payload::Of(value, 0, 16)}));
  EXPECT_TRUE(session.PullsDone());
  EXPECT_EQ(out.Span<float>()[3], 7.0f);
}

TEST(Link, PulledValuesFillRowsOfALargerTensor) {
  SinkTrainer trainer(1);
  Tensor whole(DType::kFp32, {5, 2});
  std::fill(whole.Span<float>().begin(), whole.Span<float>().end(), 3.0f);
  trainer.pulled[0] = whole.Rows(2, 4);
  trainer.Pull(0);
  trainer.AnswerPull(0, 0);
  EXPECT_TRUE(trainer.session.PullsDone());
  EXPECT_EQ(trainer.pulled[0].raw(), whole.raw() + 16);
  EXPECT_EQ(whole.Span<float>()[3], 3.0f);
  EXPECT_EQ(whole.Span<float>()[8], 3.0f);
  trainer.pulled[0] = whole.Rows(0, 5);  // does not fit
  trainer.Pull(0);
  EXPECT_NE(trainer.pulled[0].raw(), whole.raw());
  EXPECT_EQ(trainer.pulled[0].shape(), (Shape{2, 2}));
}

TEST(Link, TheNextVersionIsRequestedBeforeTheStepEnds) {
  SinkTrainer trainer(1);
  trainer.Push(0);
  trainer.PullNext(0);
  const auto asked = std::get<protocol::Pull>(LastOf(*trainer.transport.sinks[0]));
  EXPECT_EQ(asked.version, 1u);
  trainer.AnswerPull(0, 0);  // of another request
  EXPECT_FALSE(trainer.session.PullsDone());
  trainer.EndStep();
  trainer.AnswerPull(1, 0);
  EXPECT_TRUE(trainer.session.PullsDone());
  EXPECT_EQ(trainer.pulled[0].Span<float>()[0], 7.0f);
}

// A transport receives a part directly into the pulled tensor; nothing else may write there.
TEST(Link, OneMessageAtATimeIsReceivedInPlace) {
  SinkTrainer trainer(2);
  Sink& sink = *trainer.transport.sinks[0];
  const std::shared_ptr<Connection> from = trainer.transport.sinks[0];
  const auto room_for = [&](const Message& message) {
    return sink.handler.RoomFor(from, message.head, message.body.size());
  };
  std::fill_n(trainer.pulled[0].Span<float>().begin(), 4, 3.0f);
  const Message answer = trainer.Pulled(0, 0);
  EXPECT_EQ(room_for(answer).data, nullptr);  // not requested yet
  trainer.Pull(0);
  EXPECT_EQ(room_for(trainer.Pulled(0, 1)).data, nullptr);
  EXPECT_EQ(room_for(trainer.Pulled(1, 0)).data, nullptr);
  EXPECT_EQ(sink.handler.RoomFor(from, answer.head, 15).data, nullptr);
  EXPECT_EQ(sink.handler.RoomFor(from, "no envelope", 16).data, nullptr);

  const Room room = room_for(answer);
  ASSERT_EQ(room.data, trainer.pulled[0].raw());
  EXPECT_EQ(room_for(answer).data, nullptr);
  trainer.transport.Deliver(0, answer);  // a repeat, which arrived over another connection
  EXPECT_FALSE(trainer.session.PullsDone());
  EXPECT_EQ(trainer.pulled[0].Span<float>()[0], 3.0f);

  answer.body.CopyTo(room.data);
  trainer.transport.Deliver(0, {answer.head, Payload({room.owner, room.data, answer.body.size()})});
  EXPECT_TRUE(trainer.session.PullsDone());
  EXPECT_EQ(trainer.pulled[0].Span<float>()[0], 7.0f);
  EXPECT_EQ(room_for(answer).data, nullptr);  // the trainer has the tensor again
}

// The two answers of a repeated request arrive in interleaved pieces: the one with more updates wins.
TEST(Link, RowsOfTwoRepliesAreNotMixed) {
  ToyJob job = SinkJob(1, 1);
  job.params[0].table = true;
  SinkTransport transport;
  client::Session session(transport, {.job = "job"});
  const Program program = job.Trainer(0);
  ASSERT_TRUE(session.Attach(program).ok());
  const protocol::Contract contract = protocol::ReadTrainer(program).value().contracts.at(job.servers[0]);
  const auto deliver = [&](const protocol::Reply& reply) {
    transport.Deliver(0, protocol::Encode({.contract = contract.Hash(), .incarnation = 1}, reply));
  };
  deliver(
      protocol::Welcome{.body = {.part_bytes = 1000,
                                 .window = 2,
                                 .chunk_rows = std::vector<std::uint64_t>(contract.variable_count(), 2)}});
  const RowsHandle table =
      session.DeclareRows({.pserver = job.servers[0], .name = job.params[0].name}).value();
  const std::vector<std::int64_t> ids(300, 1);  // of 8 bytes each, in parts of 1000
  Tensor out;
  ASSERT_TRUE(session.PullRows(table, ids, out).ok());
  Tensor old_rows(DType::kFp32, {300, 2}), new_rows(DType::kFp32, {300, 2});
  std::fill(new_rows.Span<float>().begin(), new_rows.Span<float>().end(), 2.0f);
  const auto answer = [&](std::uint32_t part, std::uint32_t updates) {
    const std::size_t begin = part * std::size_t{1000};
    deliver(protocol::Rows{.part = part,
                           .updates = updates,
                           .bytes = Payload::Of(updates == 1 ? old_rows : new_rows, begin,
                                                std::min<std::size_t>(1000, 2400 - begin))});
  };
  answer(0, 1);
  answer(0, 2);
  answer(1, 1);
  answer(1, 2);
  answer(2, 1);
  EXPECT_FALSE(session.RowsDone());
  answer(2, 2);
  EXPECT_TRUE(session.RowsDone());
  for (const float value : out.Span<float>()) ASSERT_EQ(value, 2.0f);
}

// One change for the pushes of a step and one for its pulls, however many there are.
TEST(Link, ReportsChangedReplies) {
  int changes = 0;
  client::SessionOptions options;
  options.on_change = [&] { ++changes; };
  SinkTrainer trainer(100, 4, std::move(options));
  trainer.PushAll();
  trainer.EndStep();
  for (std::size_t i = 0; i < 100; ++i) trainer.Pull(i);
  for (std::size_t i = 0; i < 100; ++i) trainer.Acknowledge(0, i, 2);
  EXPECT_EQ(changes, 1);
  for (std::size_t i = 0; i < 100; ++i) trainer.AnswerPull(1, i);
  EXPECT_EQ(changes, 2);
}

TEST(Link, ReportsPullsNotCompletedByABarrier) {
  Program program;
  for (const char* name : {"a", "b"}) {
    program.MutableBlock(0).SetVar(TensorVar(name, DType::kFp32, {2, 2}));
    program.MutableBlock(0).Append(Op("recv")
                                       .AddOutput("Out", {name})
                                       .Set("trainer_id", std::int32_t{0})
                                       .Set("epmap", std::vector<std::string>{"s:1"}));
  }
  int changes = 0;
  client::SessionOptions options{.job = "job"};
  options.on_change = [&] { ++changes; };
  SinkTransport transport;
  client::Session session(transport, std::move(options));
  ASSERT_TRUE(session.Attach(program).ok());
  const protocol::Sender server{.contract = protocol::ReadTrainer(program).value().contracts.at("s:1").Hash(),
                                .incarnation = 1};
  transport.Deliver(
      0, protocol::Encode(
             server, protocol::Welcome{.body = {.part_bytes = 1000, .window = 2, .chunk_rows = {2, 2}}}));
  Tensor values[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    const PullHandle pull = session.DeclarePull({.pserver = "s:1", .name = i == 0 ? "a" : "b"}).value();
    ASSERT_TRUE(session.Pull(pull, values[i]).ok());
  }
  const Tensor value(DType::kFp32, {2, 2});
  for (std::uint32_t i = 0; i < 2; ++i) {
    transport.Deliver(
        0, protocol::Encode(server, protocol::Pulled{.at = {i, 0}, .bytes = Payload::Of(value, 0, 16)}));
    EXPECT_EQ(changes, static_cast<int>(i) + 1);
  }
}

TEST(Link, ServersThatContinueAfterDifferentStepsAreAnError) {
  const ToyJob job = SinkJob(2, 2);
  SinkTransport transport;
  client::Session session(transport, {.job = "job"});
  const Program program = job.Trainer(0);
  ASSERT_TRUE(session.Attach(program).ok());
  const protocol::TrainerContracts facts = protocol::ReadTrainer(program).value();
  EXPECT_EQ(session.first_step(), std::nullopt);
  for (std::size_t server = 0; server < 2; ++server) {
    const protocol::Contract& contract = facts.contracts.at(job.servers[server]);
    transport.Deliver(
        server,
        protocol::Encode({.contract = contract.Hash(), .incarnation = 1},
                         protocol::Welcome{.first_step = server == 0 ? 5U : 0U,
                                           .body = {.part_bytes = 1000, .window = 2, .chunk_rows = {2, 2}}}));
    EXPECT_EQ(session.first_step(), 5U);
  }
  EXPECT_EQ(session.status().id(), "E-resume-differs");
  EXPECT_EQ(session.status().message(),
            "pserver server11:1 continues after step 0, another pserver after step 5");
}

// A new process of a trainer may repeat a step that this server has in a checkpoint: its gradient must not
// fill the log for ever.
TEST(Link, ARepeatedStepThatACheckpointHasIsNotKept) {
  const ToyJob job = SinkJob(1, 1);
  SinkTransport transport;
  client::Session session(transport, {.job = "job",
                                      .reconnect_deadline = std::chrono::seconds(60),
                                      .joins = client::Joins::kAtLowest,
                                      .retention_bytes = 1});
  const Program program = job.Trainer(0);
  ASSERT_TRUE(session.Attach(program).ok());
  const protocol::Contract contract = protocol::ReadTrainer(program).value().contracts.begin()->second;
  protocol::Sender server{.contract = contract.Hash(), .incarnation = 1};
  const auto deliver = [&](const protocol::Reply& reply) {
    transport.Deliver(0, protocol::Encode(server, reply));
  };
  deliver(protocol::Welcome{
      .steps_ended = 2,
      .body = {.part_bytes = 1000, .window = 6, .chunk_rows = {2, 2}, .incarnation = 1, .version = 0}});
  ASSERT_TRUE(session.Join());
  server.durable_version = 3;
  deliver(protocol::Durable{});
  const PushHandle push =
      session.DeclarePush({.pserver = job.servers[0], .name = contract.grads[0].name}).value();
  const PeersHandle peers = session.DeclarePeers(job.servers).value();
  const Tensor gradient(DType::kFp32, {2, 2});
  for (const std::uint64_t step : {2, 3}) {
    ASSERT_TRUE(session.Push(push, gradient).ok());
    const protocol::Event last = protocol::DecodeEvent(transport.sinks[0]->last).value().message;
    ASSERT_TRUE(std::holds_alternative<protocol::Push>(last)) << session.WaitingFor();
    EXPECT_EQ(std::get<protocol::Push>(last).step, step);
    deliver(protocol::Pushed{.at = {1, 0}, .step = step, .part = 0, .welcome_below = 6});
    ASSERT_TRUE(session.EndStep(peers).ok());
  }
}

TEST(Link, AWelcomeWithDifferentChunksIsRefused) {
  SinkTrainer trainer(2);
  ASSERT_TRUE(trainer.session.Attach(SinkJob(3, 1).Trainer(0)).ok());
  const protocol::Contract contract =
      protocol::ReadTrainer(SinkJob(3, 1).Trainer(0)).value().contracts.begin()->second;
  trainer.transport.Deliver(
      0, protocol::Encode(
             {.contract = contract.Hash(), .incarnation = 1},
             protocol::Welcome{
                 .body = {.part_bytes = 1000, .window = 2, .chunk_rows = std::vector<std::uint64_t>(6, 1)}}));
  EXPECT_EQ(trainer.session.status().id(), "E-rpc-welcome");
}

}  // namespace
}  // namespace penstock::test
