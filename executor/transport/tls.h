// TLS between trainers and pservers, from files in PEM: PENSTOCK_TLS_CERT and PENSTOCK_TLS_KEY are a server's
// (its names are those of the pservers' addresses), PENSTOCK_TLS_CA is what clients check it with. Mutual
// (PENSTOCK_TLS_MUTUAL=1): clients show their CERT and KEY too, and the server checks them with its CA.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "executor/transport/grpc_transport.h"
#include "framework/base/status.h"

namespace penstock::transport {

inline bool ServerSpeaksTls(const TlsFiles& files) { return !files.cert.empty() || !files.key.empty(); }
inline bool ClientSpeaksTls(const TlsFiles& files) { return !files.ca.empty(); }

// Without TLS where the files name none for that side.
// kInvalidArgument E-rpc-tls-files: a file that is needed is not named, or cannot be read.
Result<std::shared_ptr<grpc::ServerCredentials>> ServerCredentialsOf(const TlsFiles& files);
Result<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentialsOf(const TlsFiles& files);

}  // namespace penstock::transport
