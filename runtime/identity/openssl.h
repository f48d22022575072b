// OpenSSL's objects with owners, its errors as text, PEM to and from them, and
// the two kinds of keys that a run has.
//
// Internal to runtime/identity and to the TLS gate (transport/grpc); knows
// nothing of runs or peers.

#ifndef GOSSAMER_RUNTIME_IDENTITY_OPENSSL_H_
#define GOSSAMER_RUNTIME_IDENTITY_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gossamer::openssl {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* p) const {
    kFree(p);
  }
};
inline void FreeNames(GENERAL_NAMES* names) { GENERAL_NAMES_free(names); }
inline void FreeExtensions(STACK_OF(X509_EXTENSION) * all) {
  sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
}

using BioPtr = std::unique_ptr<BIO, Free<BIO_free_all>>;
using CertificatePtr = std::unique_ptr<X509, Free<X509_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, Free<X509_CRL_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Free<X509_REQ_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Free<FreeNames>>;
using ExtensionsPtr =
    std::unique_ptr<STACK_OF(X509_EXTENSION), Free<FreeExtensions>>;
using StorePtr = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;
using StoreContextPtr =
    std::unique_ptr<X509_STORE_CTX, Free<X509_STORE_CTX_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using TimePtr = std::unique_ptr<ASN1_TIME, Free<ASN1_TIME_free>>;
using IntegerPtr = std::unique_ptr<ASN1_INTEGER, Free<ASN1_INTEGER_free>>;
using BignumPtr = std::unique_ptr<BIGNUM, Free<BN_free>>;
using OctetsPtr =
    std::unique_ptr<ASN1_OCTET_STRING, Free<ASN1_OCTET_STRING_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;

// kInternal with OpenSSL's own reason; empties its queue of errors.
inline absl::Status Error(absl::string_view what) {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return absl::InternalError(absl::StrCat(what, reason == nullptr ? "" : ": ",
                                          reason == nullptr ? "" : reason));
}

inline BioPtr Reader(absl::string_view text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The pass phrase of PEM under one: without it OpenSSL would ask the terminal.
inline char kNoPassPhrase[] = "";

// Null if `pem` holds none.
inline CertificatePtr ReadCertificatePem(absl::string_view pem) {
  CertificatePtr read(
      PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, kNoPassPhrase));
  ERR_clear_error();
  return read;
}
inline CrlPtr ReadCrlPem(absl::string_view pem) {
  CrlPtr read(PEM_read_bio_X509_CRL(Reader(pem).get(), nullptr, nullptr,
                                    kNoPassPhrase));
  ERR_clear_error();
  return read;
}
inline KeyPtr ReadKeyPem(absl::string_view pem) {
  KeyPtr read(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, nullptr,
                                      kNoPassPhrase));
  ERR_clear_error();
  return read;
}
// The next one of `reader`.
inline RequestPtr ReadRequestPem(BIO* reader) {
  RequestPtr read(
      PEM_read_bio_X509_REQ(reader, nullptr, nullptr, kNoPassPhrase));
  ERR_clear_error();
  return read;
}

// The text that `write` writes to a BIO; empty if it fails.
template <typename F>
std::string ToPem(F write) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (!out || write(out.get()) != 1) return "";
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

inline absl::string_view TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

// Keys for connections: not every TLS library that gRPC is built with takes
// Ed25519 there.  Null if OpenSSL cannot.
inline KeyPtr MakeP256() { return KeyPtr(EVP_EC_gen("P-256")); }
inline bool IsP256(const EVP_PKEY* key) {
  char group[32] = "";
  return EVP_PKEY_get_group_name(key, group, sizeof(group), nullptr) == 1 &&
         absl::string_view(group) == SN_X9_62_prime256v1;
}
// Keys that only sign.  Null if OpenSSL cannot.
inline KeyPtr MakeEd25519() {
  return KeyPtr(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
}
inline bool IsEd25519(const EVP_PKEY* key) {
  return key != nullptr && EVP_PKEY_is_a(key, "ED25519") == 1;
}

// PKCS #8 without a pass phrase.  `key` may be null, which is an error.
inline absl::StatusOr<std::string> PrivateKeyPem(EVP_PKEY* key) {
  std::string pem;
  if (key != nullptr) {
    pem = ToPem([key](BIO* out) {
      return PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0,
                                           nullptr, nullptr);
    });
  }
  if (pem.empty()) return Error("cannot make a key");
  return pem;
}

// SubjectPublicKeyInfo; empty if it cannot be written.
inline std::string PublicKeyDer(EVP_PKEY* key) {
  unsigned char* bytes = nullptr;
  const int size = i2d_PUBKEY(key, &bytes);
  std::string der(reinterpret_cast<char*>(bytes),
                  static_cast<size_t>(size > 0 ? size : 0));
  OPENSSL_free(bytes);
  return der;
}
// Null if `der` is none.
inline KeyPtr ReadPublicKeyDer(absl::string_view der) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  KeyPtr key(d2i_PUBKEY(nullptr, &bytes, static_cast<long>(der.size())));
  ERR_clear_error();
  return key;
}

// InfinitePast if `time` is none.
inline absl::Time ToTime(const ASN1_TIME* time) {
  std::tm broken_down = {};
  if (ASN1_TIME_to_tm(time, &broken_down) != 1) return absl::InfinitePast();
  return absl::FromTM(broken_down, absl::UTCTimeZone());
}

}  // namespace gossamer::openssl

#endif  // GOSSAMER_RUNTIME_IDENTITY_OPENSSL_H_
