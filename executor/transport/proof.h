// The two ends of a connection prove to each other that they know the job's token, before they send anything
// else. The token itself is never sent, and the bytes sent are useless on another connection:
//
//   server   "PNS" 2, flags (bit 0: TLS follows, bit 1: a unix socket is open), 3 zeros, its nonce (32)
//                                                                                             40 bytes
//   client   "PNS" 2, what follows (Follows), 3 zeros, its nonce (32),
//            HMAC-SHA256(token, "client" flags both nonces)                                   72 bytes
//   server   "PNS" 2, verdict, 3 zeros, HMAC-SHA256(token, "server" flags both nonces)        40 bytes
//
// The unix socket's abstract name is made of the first 8 bytes of the server's nonce, which are equal for all
// of its connections. A client that reaches that socket proves the token there; over TCP it then sends kMoved
// and zeros (72 bytes) and closes.
//
// The stream that follows shows a further proof (ProofOf kStream). TLS, if used, hides it on the wire, so no
// third party can take over a connection between the proof and TLS.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace penstock::transport {

inline constexpr std::size_t kProofBytes = 32;
using ProofBytes = std::array<char, kProofBytes>;

struct Nonces {
  bool tls = false;    // whether TLS follows, according to the server
  bool local = false;  // the server has a unix socket, or this connection uses it
  ProofBytes server{}, client{};
};

// The common prefix of all nonces of one server.
inline constexpr std::size_t kServerIdBytes = 8;

enum class Prover { kClient, kServer, kStream };

// kUnavailable E-rpc-random: the system gives no random bytes.
Result<ProofBytes> MakeNonce();
// kUnavailable E-rpc-random if the cryptographic library refuses (no memory).
Result<ProofBytes> ProofOf(Prover prover, const std::string& token, const Nonces& nonces);
// Compares in constant time.
bool SameProof(std::string_view a, const ProofBytes& b);

// The beginnings by which each wire recognises the other: of everything that this protocol sends, and of what
// a gRPC client sends first. A gRPC server's first bytes are the head of a SETTINGS frame (IsHttp2Settings).
inline constexpr std::string_view kMagic("PNS\x02", 4);
inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0";
inline constexpr std::size_t kHeadBytes = 8;
bool IsHttp2Settings(std::string_view head);

inline constexpr std::size_t kChallengeBytes = 40;
std::string WriteChallenge(const Nonces& nonces);
// kFailedPrecondition E-rpc-protocol: the peer is not a pserver, or has another version of the protocol.
Status ReadChallenge(std::string_view bytes, Nonces& nonces);

// What follows the verdict on the socket.
enum class Follows : unsigned char {
  kRecords = 0,  // gRPC or, on a unix socket, a LocalLink
  kMoved = 1,    // nothing: the client uses the unix socket
  kBodies = 2,   // the pass of a connection's first stream, then a TcpStream
};

inline constexpr std::size_t kAnswerBytes = 72;
std::string WriteAnswer(Follows follows, const ProofBytes& nonce, const ProofBytes& proof);
// The answer of a client that has moved to the unix socket.
std::string WriteMoved();
bool IsMoved(std::string_view bytes);
struct AnswerRead {
  Follows follows = Follows::kRecords;
  std::string proof;
};
// Stores the client's nonce in `nonces`. E-rpc-protocol as above.
Result<AnswerRead> ReadAnswer(std::string_view bytes, Nonces& nonces);

enum class Verdict : unsigned char { kWelcome = 0, kWrongToken = 1, kFull = 2 };
inline constexpr std::size_t kVerdictBytes = 40;
std::string WriteVerdict(Verdict verdict, const ProofBytes& proof);
struct VerdictRead {
  Verdict verdict = Verdict::kWelcome;
  std::string proof;  // in a positive verdict
};
Result<VerdictRead> ReadVerdict(std::string_view bytes);

// The pass of a stream: the server's nonce, by which the server finds the connection, and the stream's proof,
// in hexadecimal.
inline constexpr std::size_t kPassBytes = 4 * kProofBytes;
std::string WritePass(const ProofBytes& server_nonce, const ProofBytes& proof);

}  // namespace penstock::transport
