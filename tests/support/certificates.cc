#include "tests/support/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/check.h"

namespace optfarm::testing {
namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, Freed<X509_free>>;
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free>>;

constexpr long kDay = 24 * 60 * 60;

Key MakeKey() {
  Key key(EVP_EC_gen("P-256"));
  OPTFARM_CHECK(key != nullptr);
  return key;
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string ToPem(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  OPTFARM_CHECK(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return Contents(bio.get());
}

std::string ToPem(EVP_PKEY* key) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  OPTFARM_CHECK(PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0,
                                         nullptr, nullptr) == 1);
  return Contents(bio.get());
}

void AddExtension(X509* certificate, X509* issuer, int kind,
                  const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension =
      X509V3_EXT_conf_nid(nullptr, &context, kind, value);
  OPTFARM_CHECK(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Not signed yet.
X509Ptr MakeCertificate(const std::string& name, long serial, EVP_PKEY* key) {
  X509Ptr certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 7 * kDay);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(
      subject, "CN", MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

}  // namespace

struct CertificateAuthority::Keys {
  Key key;
  X509Ptr certificate;
  long last_serial = 1;
};

CertificateAuthority::CertificateAuthority(const std::string& name)
    : keys_(std::make_unique<Keys>()) {
  keys_->key = MakeKey();
  keys_->certificate = MakeCertificate(name, 1, keys_->key.get());
  X509* own = keys_->certificate.get();
  X509_set_issuer_name(own, X509_get_subject_name(own));
  AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign");
  OPTFARM_CHECK(X509_sign(own, keys_->key.get(), EVP_sha256()) > 0);
}

CertificateAuthority::~CertificateAuthority() = default;

std::string CertificateAuthority::certificate() const {
  return ToPem(keys_->certificate.get());
}

Certificate CertificateAuthority::Sign(const std::string& name) {
  const Key key = MakeKey();
  const X509Ptr certificate =
      MakeCertificate(name, ++keys_->last_serial, key.get());
  X509* issuer = keys_->certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  AddExtension(certificate.get(), issuer, NID_subject_alt_name,
               "DNS:localhost,IP:127.0.0.1");
  OPTFARM_CHECK(X509_sign(certificate.get(), keys_->key.get(), EVP_sha256()) >
                0);
  return {ToPem(certificate.get()), ToPem(key.get())};
}

}  // namespace optfarm::testing
