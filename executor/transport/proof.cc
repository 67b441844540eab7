#include "executor/transport/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <cstring>

namespace penstock::transport {
namespace {

std::string Head(unsigned char fifth) {
  std::string head(kMagic);
  head.push_back(static_cast<char>(fifth));
  head.resize(kHeadBytes);
  return head;
}

unsigned char Flags(const Nonces& nonces) {
  return static_cast<unsigned char>((nonces.tls ? 1 : 0) | (nonces.local ? 2 : 0));
}

void Append(std::string& to, const ProofBytes& bytes) { to.append(bytes.data(), bytes.size()); }

ProofBytes Take(std::string_view bytes, std::size_t at) {
  ProofBytes taken;
  std::memcpy(taken.data(), bytes.data() + at, taken.size());
  return taken;
}

Status CheckHead(std::string_view bytes, std::size_t size) {
  if (bytes.size() == size && bytes.substr(0, kMagic.size()) == kMagic) return OkStatus();
  return FailedPrecondition("E-rpc-protocol",
                            "what answers there is not a pserver of this version of penstock");
}

std::string_view NameOf(Prover prover) {
  switch (prover) {
    case Prover::kClient:
      return "penstock client";
    case Prover::kServer:
      return "penstock server";
    case Prover::kStream:
      break;
  }
  return "penstock stream";
}

}  // namespace

// Length (3 bytes), type 4, no flags, stream 0.
bool IsHttp2Settings(std::string_view head) {
  constexpr std::string_view kSettings("\x04\0\0\0\0", 5);
  return head.size() >= kHeadBytes && head.substr(3, kSettings.size()) == kSettings;
}

Result<ProofBytes> MakeNonce() {
  ProofBytes nonce;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), static_cast<int>(nonce.size())) == 1)
    return nonce;
  return Unavailable("E-rpc-random", "the system gives no random bytes");
}

Result<ProofBytes> ProofOf(Prover prover, const std::string& token, const Nonces& nonces) {
  std::string text(NameOf(prover));
  text.push_back(static_cast<char>(Flags(nonces)));
  Append(text, nonces.server);
  Append(text, nonces.client);
  ProofBytes proof;
  unsigned size = 0;
  const unsigned char* made = HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
                                   reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                                   reinterpret_cast<unsigned char*>(proof.data()), &size);
  if (made != nullptr && size == proof.size()) return proof;
  return Unavailable("E-rpc-random", "the proof of the job token cannot be computed");
}

bool SameProof(std::string_view a, const ProofBytes& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), b.size()) == 0;
}

std::string WriteChallenge(const Nonces& nonces) {
  std::string bytes = Head(Flags(nonces));
  Append(bytes, nonces.server);
  return bytes;
}

Status ReadChallenge(std::string_view bytes, Nonces& nonces) {
  PENSTOCK_RETURN_IF_ERROR(CheckHead(bytes, kChallengeBytes));
  nonces.tls = (bytes[4] & 1) != 0;
  nonces.local = (bytes[4] & 2) != 0;
  nonces.server = Take(bytes, kHeadBytes);
  return OkStatus();
}

std::string WriteAnswer(Follows follows, const ProofBytes& nonce, const ProofBytes& proof) {
  std::string bytes = Head(static_cast<unsigned char>(follows));
  Append(bytes, nonce);
  Append(bytes, proof);
  return bytes;
}

std::string WriteMoved() {
  std::string bytes = Head(static_cast<unsigned char>(Follows::kMoved));
  bytes.resize(kAnswerBytes);
  return bytes;
}

bool IsMoved(std::string_view bytes) { return bytes == WriteMoved(); }

Result<AnswerRead> ReadAnswer(std::string_view bytes, Nonces& nonces) {
  PENSTOCK_RETURN_IF_ERROR(CheckHead(bytes, kAnswerBytes));
  const auto follows = static_cast<unsigned char>(bytes[4]);
  if (follows > static_cast<unsigned char>(Follows::kBodies)) {
    return FailedPrecondition("E-rpc-protocol", "a client announces the unknown stream ",
                              static_cast<int>(follows));
  }
  nonces.client = Take(bytes, kHeadBytes);
  return AnswerRead{static_cast<Follows>(follows), std::string(bytes.substr(kHeadBytes + kProofBytes))};
}

std::string WriteVerdict(Verdict verdict, const ProofBytes& proof) {
  std::string bytes = Head(static_cast<unsigned char>(verdict));
  Append(bytes, proof);
  return bytes;
}

Result<VerdictRead> ReadVerdict(std::string_view bytes) {
  PENSTOCK_RETURN_IF_ERROR(CheckHead(bytes, kVerdictBytes));
  const auto verdict = static_cast<unsigned char>(bytes[4]);
  if (verdict > static_cast<unsigned char>(Verdict::kFull)) {
    return FailedPrecondition("E-rpc-protocol", "the pserver answers with the unknown verdict ",
                              static_cast<int>(verdict));
  }
  return VerdictRead{static_cast<Verdict>(verdict), std::string(bytes.substr(kHeadBytes))};
}

std::string WritePass(const ProofBytes& server_nonce, const ProofBytes& proof) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string pass;
  for (const ProofBytes* bytes : {&server_nonce, &proof}) {
    for (const char byte : *bytes) {
      pass.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
      pass.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
    }
  }
  return pass;
}

}  // namespace penstock::transport
