#include "executor/transport/tls.h"

#include "framework/base/files.h"

namespace penstock::transport {
namespace {

constexpr std::size_t kPemBytesMax = std::size_t{1} << 20;

Result<std::string> ReadPem(const char* variable, const std::string& path) {
  if (path.empty()) return InvalidArgument("E-rpc-tls-files", "TLS needs ", variable, ", which is not set");
  Result<std::string> bytes = ReadFile(path, {.bytes_max = kPemBytesMax});
  if (!bytes.ok()) return InvalidArgument("E-rpc-tls-files", variable, ": ", bytes.status().message());
  if (bytes->find("-----BEGIN ") == std::string::npos)
    return InvalidArgument("E-rpc-tls-files", variable, ": ", path, " is no PEM file");
  return bytes;
}

}  // namespace

Result<std::shared_ptr<grpc::ServerCredentials>> ServerCredentialsOf(const TlsFiles& files) {
  if (!ServerSpeaksTls(files)) {
    if (!files.mutual && files.ca.empty()) return grpc::InsecureServerCredentials();
    return InvalidArgument("E-rpc-tls-files",
                           "a pserver with TLS needs PENSTOCK_TLS_CERT and PENSTOCK_TLS_KEY");
  }
  grpc::SslServerCredentialsOptions options(files.mutual
                                                ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  grpc::SslServerCredentialsOptions::PemKeyCertPair pair;
  PENSTOCK_ASSIGN_OR_RETURN(pair.private_key, ReadPem("PENSTOCK_TLS_KEY", files.key));
  PENSTOCK_ASSIGN_OR_RETURN(pair.cert_chain, ReadPem("PENSTOCK_TLS_CERT", files.cert));
  options.pem_key_cert_pairs.push_back(std::move(pair));
  if (files.mutual) {
    PENSTOCK_ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem("PENSTOCK_TLS_CA", files.ca));
  }
  return grpc::SslServerCredentials(options);
}

Result<std::shared_ptr<grpc::ChannelCredentials>> ClientCredentialsOf(const TlsFiles& files) {
  if (!ClientSpeaksTls(files)) {
    if (!files.mutual && !ServerSpeaksTls(files)) return grpc::InsecureChannelCredentials();
    return InvalidArgument("E-rpc-tls-files", "a trainer with TLS needs PENSTOCK_TLS_CA");
  }
  grpc::SslCredentialsOptions options;
  PENSTOCK_ASSIGN_OR_RETURN(options.pem_root_certs, ReadPem("PENSTOCK_TLS_CA", files.ca));
  if (files.mutual) {
    PENSTOCK_ASSIGN_OR_RETURN(options.pem_private_key, ReadPem("PENSTOCK_TLS_KEY", files.key));
    PENSTOCK_ASSIGN_OR_RETURN(options.pem_cert_chain, ReadPem("PENSTOCK_TLS_CERT", files.cert));
  }
  return grpc::SslCredentials(options);
}

}  // namespace penstock::transport
