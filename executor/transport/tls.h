// TLS between trainers and pservers, from PEM files. PENSTOCK_TLS_CERT and PENSTOCK_TLS_KEY are the server's
// certificate and key (the certificate's names must match the pservers' addresses); clients verify it with
// PENSTOCK_TLS_CA. Mutual TLS (PENSTOCK_TLS_MUTUAL=1): clients present their CERT and KEY too, and the server
// verifies them with its CA.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "executor/transport/grpc_transport.h"
#include "framework/base/status.h"

namespace penstock::transport {

inline bool ServerSpeaksTls(const TlsFiles& files) { return !files.cert.empty() || !files.key.empty(); }
inline bool ClientSpeaksTls(const TlsFiles& files) { return !files.ca.empty(); }

// Credentials without TLS if no files are named for that side.
// kInvalidArgument E-rpc-tls-files: a required file is not named, or cannot be read.
Result<std::shared_ptr<grpc::ServerCredentials>> ServerCredentialsOf(const TlsFiles& files);
Result<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentialsOf(const TlsFiles& files);

}  // namespace penstock::transport
