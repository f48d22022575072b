// OpenSSL's objects with owners, its errors as text, and PEM to and from them.
//
// Internal to runtime/identity; knows nothing of runs or peers.

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

using BioPtr = std::unique_ptr<BIO, Free<BIO_free_all>>;
using CertificatePtr = std::unique_ptr<X509, Free<X509_free>>;
using CrlPtr = std::unique_ptr<X509_CRL, Free<X509_CRL_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Free<X509_REQ_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, Free<FreeNames>>;
using StorePtr = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;
using StoreContextPtr =
    std::unique_ptr<X509_STORE_CTX, Free<X509_STORE_CTX_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using TimePtr = std::unique_ptr<ASN1_TIME, Free<ASN1_TIME_free>>;
using IntegerPtr = std::unique_ptr<ASN1_INTEGER, Free<ASN1_INTEGER_free>>;
using BignumPtr = std::unique_ptr<BIGNUM, Free<BN_free>>;

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

// Null if `pem` holds none.
inline CertificatePtr ReadCertificatePem(absl::string_view pem) {
  CertificatePtr read(
      PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return read;
}
inline CrlPtr ReadCrlPem(absl::string_view pem) {
  CrlPtr read(
      PEM_read_bio_X509_CRL(Reader(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return read;
}
inline KeyPtr ReadKeyPem(absl::string_view pem) {
  // A key under a pass phrase is not asked for, it is not read.
  char none[] = "";
  KeyPtr read(
      PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, nullptr, none));
  ERR_clear_error();
  return read;
}

// What `write` writes to a BIO; empty if it fails.
template <typename F>
std::string ToPem(F write) {
  const BioPtr out(BIO_new(BIO_s_mem()));
  if (!out || write(out.get()) != 1) return "";
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

inline absl::Time ToTime(const ASN1_TIME* time) {
  std::tm broken_down = {};
  if (ASN1_TIME_to_tm(time, &broken_down) != 1) return absl::InfinitePast();
  return absl::FromTM(broken_down, absl::UTCTimeZone());
}

}  // namespace gossamer::openssl

#endif  // GOSSAMER_RUNTIME_IDENTITY_OPENSSL_H_
