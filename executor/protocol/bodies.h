// Writes and reads the bodies of control messages. Each Read checks every size against the remaining bytes
// before it allocates, and rejects trailing bytes (kDataLoss E-rpc-body).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock::protocol {

struct HelloBody {
  std::string job;
  std::uint32_t trainers = 0;  // number of trainers according to this trainer's environment; 0: unknown
  std::string contract;        // Contract::ToText
  std::string job_facts;       // ProgramMeta::job_facts; may be empty
  std::string process = {};    // DescribeThisProcess (runtime/process_id.h); empty: unknown
};
// A server limits the hello of an unknown peer to 64 KB. If the contract is too long for it, only its first
// lines and kCutLine are sent; the envelope's hash covers the whole contract.
inline constexpr std::string_view kCutLine = "...\n";
std::string WriteHello(const HelloBody& body);
Result<HelloBody> ReadHello(std::string_view bytes);

struct WelcomeBody {
  std::uint32_t part_bytes = 0;           // the size of the parts in which a chunk travels
  std::uint32_t window = 0;               // steps that a push may be ahead of its variable's version
  std::vector<std::uint64_t> chunk_rows;  // by variable
  // Variables whose pushes wait for Credit from the first step on, whatever the window.
  std::vector<std::uint32_t> by_turn = {};
  // Of a server that may be started again by itself: the number of its start, from 1. 0: trainers need not
  // keep what it has acknowledged.
  std::uint64_t incarnation = 0;
  std::uint64_t version = 0;  // with which it started: it has the gradients of the steps below
};
std::string WriteWelcome(const WelcomeBody& body);
Result<WelcomeBody> ReadWelcome(std::string_view bytes);

// The variables (positions in the contract) pushed in a step.
std::string WriteVariables(const std::vector<std::uint32_t>& variables);
Result<std::vector<std::uint32_t>> ReadVariables(std::string_view bytes);

struct SaveBody {
  std::string table, file;
};
std::string WriteSave(const SaveBody& body);
Result<SaveBody> ReadSave(std::string_view bytes);

std::string WriteStatus(const Status& status);
// Returns the status that the other side wrote; kDataLoss if the bytes are not a status.
Status ReadStatus(std::string_view bytes);

}  // namespace penstock::protocol
