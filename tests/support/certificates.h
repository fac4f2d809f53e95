// Certificates for tests, made on the spot and good for this machine only.

#ifndef OPTFARM_TESTS_SUPPORT_CERTIFICATES_H_
#define OPTFARM_TESTS_SUPPORT_CERTIFICATES_H_

#include <memory>
#include <string>

namespace optfarm::testing {

// PEM.
struct Certificate {
  std::string certificate;
  std::string key;
};

// An authority that signs certificates for "localhost" and 127.0.0.1.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& name);
  ~CertificateAuthority();

  // Its own certificate, which who trusts it is given.
  std::string certificate() const;
  Certificate Sign(const std::string& name);

 private:
  struct Keys;
  std::unique_ptr<Keys> keys_;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_SUPPORT_CERTIFICATES_H_
