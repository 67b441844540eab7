// The bodies of control messages. Each reads what it wrote, checks every size against what is left before it
// allocates, and refuses bytes left over (kDataLoss E-rpc-body).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/status.h"

namespace penstock::protocol {

struct HelloBody {
  std::string job;
  std::uint32_t trainers = 0;  // as this trainer was told; 0: it was not
  std::string contract;        // Contract::ToText
  std::string job_facts;       // ProgramMeta::job_facts; empty: the program has none
};
// Of a contract so long that the hello would not be one that a server takes from a stranger (64 KB), its
// first lines and kCutLine: the envelope's hash stands for all of it.
inline constexpr std::string_view kCutLine = "...\n";
std::string WriteHello(const HelloBody& body);
Result<HelloBody> ReadHello(std::string_view bytes);

struct WelcomeBody {
  std::uint32_t part_bytes = 0;           // a chunk travels in parts of this size
  std::uint32_t window = 0;               // steps that may be pushed ahead of a variable's version
  std::vector<std::uint64_t> chunk_rows;  // by variable
  // Variables whose pushes wait for credit (Credit) from the first step on: the window is not theirs.
  std::vector<std::uint32_t> by_turn = {};
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
// The status that the other side wrote; kDataLoss if the bytes are not one.
Status ReadStatus(std::string_view bytes);

}  // namespace penstock::protocol
