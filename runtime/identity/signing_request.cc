#include "runtime/identity/signing_request.h"

#include <span>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "algorithms/base/status_macros.h"
#include "runtime/base/sha256.h"
#include "runtime/identity/openssl.h"

namespace gossamer {
namespace {

absl::Status Wrong(absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(why, "; gossamer certs request makes one"));
}

absl::StatusOr<std::string> WriteOne(const Identity& identity,
                                     const std::string& private_key,
                                     bool signs) {
  const openssl::KeyPtr key = openssl::ReadKeyPem(private_key);
  if (!key ||
      !(signs ? openssl::IsEd25519(key.get()) : openssl::IsP256(key.get()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("no private key of the kind ",
                     signs ? "Ed25519" : "EC P-256", " in PEM"));
  }
  const openssl::RequestPtr request(X509_REQ_new());
  const openssl::ExtensionsPtr extensions(sk_X509_EXTENSION_new_null());
  X509_EXTENSION* names = X509V3_EXT_conf_nid(
      nullptr, nullptr, NID_subject_alt_name,
      absl::StrCat("critical,URI:", ToUri(identity)).c_str());
  if (names == nullptr || !extensions ||
      sk_X509_EXTENSION_push(extensions.get(), names) == 0) {
    X509_EXTENSION_free(names);
    return openssl::Error("cannot name an identity");
  }
  // Ed25519 hashes by itself (RFC 8032).
  const EVP_MD* const digest = signs ? nullptr : EVP_sha256();
  std::string pem;
  if (request && X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
      X509_REQ_add_extensions(request.get(), extensions.get()) == 1 &&
      X509_REQ_sign(request.get(), key.get(), digest) > 0) {
    pem = openssl::ToPem(
        [&](BIO* out) { return PEM_write_bio_X509_REQ(out, request.get()); });
  }
  if (pem.empty()) return openssl::Error("cannot make a request");
  return pem;
}

// Returns the one identity among the names that `request` asks for.
absl::StatusOr<Identity> IdentityOf(X509_REQ* request) {
  const openssl::ExtensionsPtr extensions(X509_REQ_get_extensions(request));
  const openssl::NamesPtr names(
      extensions
          ? static_cast<GENERAL_NAMES*>(X509V3_get_d2i(
                extensions.get(), NID_subject_alt_name, nullptr, nullptr))
          : nullptr);
  const int count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  const GENERAL_NAME* const name =
      count == 1 ? sk_GENERAL_NAME_value(names.get(), 0) : nullptr;
  // Names of hosts are the authority's to give: a request cannot smuggle them
  // in.
  if (name == nullptr || name->type != GEN_URI) {
    return Wrong(absl::StrCat(
        "a request with ", count,
        " names: one of a run has its identity alone (host names are given to "
        "gossamer certs sign)"));
  }
  GOSSAMER_ASSIGN_OR_RETURN(
      Identity identity,
      ParseIdentity(openssl::TextOf(name->d.uniformResourceIdentifier)));
  if (identity.role == Role::kAuthority) {
    return Wrong("a request to be the authority, which signs requests itself");
  }
  return identity;
}

struct One {
  Identity identity;
  std::string key;  // DER
};

// The kind of the key comes first: a signature by another may take long to
// check.
absl::StatusOr<One> ReadOne(BIO* reader, bool signs) {
  const openssl::RequestPtr request = openssl::ReadRequestPem(reader);
  if (!request) {
    return Wrong(signs ? "a request of the topology service without one for "
                         "the key that signs views"
                       : "no certificate request in PEM");
  }
  const openssl::KeyPtr key(X509_REQ_get_pubkey(request.get()));
  const bool usual = key && (signs ? openssl::IsEd25519(key.get())
                                   : openssl::IsP256(key.get()));
  if (!usual) {
    ERR_clear_error();
    return Wrong(absl::StrCat("a request for a key of another kind than ",
                              signs ? "Ed25519" : "EC P-256"));
  }
  if (X509_REQ_verify(request.get(), key.get()) != 1) {
    ERR_clear_error();
    return Wrong(
        "a request whose signature is not by its own key: it was damaged or "
        "changed on its way");
  }
  One one;
  absl::StatusOr<Identity> identity = IdentityOf(request.get());
  ERR_clear_error();
  GOSSAMER_RETURN_IF_ERROR(identity.status());
  one.identity = *std::move(identity);
  // The key is taken out of the request, and nothing else: the certificate is
  // made anew from it.
  one.key = openssl::PublicKeyDer(key.get());
  if (one.key.empty()) return openssl::Error("cannot write a public key");
  return one;
}

}  // namespace

absl::StatusOr<RequestKeys> MakeRequestKeys(Role role) {
  RequestKeys keys;
  GOSSAMER_ASSIGN_OR_RETURN(keys.key,
                            openssl::PrivateKeyPem(openssl::MakeP256().get()));
  if (role == Role::kTopology) {
    GOSSAMER_ASSIGN_OR_RETURN(
        keys.signer_key, openssl::PrivateKeyPem(openssl::MakeEd25519().get()));
  }
  return keys;
}

absl::StatusOr<std::string> WriteSigningRequest(const Identity& identity,
                                                const RequestKeys& keys) {
  GOSSAMER_ASSIGN_OR_RETURN(std::string pem,
                            WriteOne(identity, keys.key, /*signs=*/false));
  if (identity.role == Role::kTopology) {
    GOSSAMER_ASSIGN_OR_RETURN(
        const std::string second,
        WriteOne(identity, keys.signer_key, /*signs=*/true));
    pem += second;
  }
  return pem;
}

absl::StatusOr<SigningRequest> ReadSigningRequest(absl::string_view pem) {
  // The text comes from another machine, so its size is looked at first.
  if (pem.size() > kMaxSigningRequestBytes) {
    return Wrong(absl::StrCat("a request of ", pem.size(),
                              " bytes, of which none has more than ",
                              kMaxSigningRequestBytes));
  }
  const openssl::BioPtr reader = openssl::Reader(pem);
  GOSSAMER_ASSIGN_OR_RETURN(One first, ReadOne(reader.get(), false));
  SigningRequest request{.identity = std::move(first.identity),
                         .key = std::move(first.key),
                         .signer_key = {}};
  if (request.identity.role == Role::kTopology) {
    GOSSAMER_ASSIGN_OR_RETURN(One second, ReadOne(reader.get(), true));
    if (second.identity != request.identity) {
      return Wrong("two requests of different identities in one file");
    }
    request.signer_key = std::move(second.key);
  }
  // People have compared the digest of what was read; a request behind it would
  // go unseen.
  if (openssl::ReadRequestPem(reader.get())) {
    return Wrong("a file with one request too many");
  }
  return request;
}

std::string KeyDigest(const SigningRequest& request) {
  // Both keys are in the digest: comparing one number covers all that the
  // authority will sign.
  const std::string keys = request.key + request.signer_key;
  return absl::BytesToHexString(Sha256(std::as_bytes(std::span(keys))));
}

}  // namespace gossamer
