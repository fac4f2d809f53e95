// What the .proto files say about messages, fields, enums and methods: their
// comments, which compiled descriptors do not have.

#ifndef OPTFARM_HTTP_PROTO_COMMENTS_H_
#define OPTFARM_HTTP_PROTO_COMMENTS_H_

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace optfarm::http {

// A FileDescriptorSet of proto/optfarm/v1 with source information. Generated
// by the build.
absl::string_view ProtoDescriptors();

class ProtoComments {
 public:
  // `descriptors`: as ProtoDescriptors. What cannot be read has no comments.
  explicit ProtoComments(absl::string_view descriptors);

  // The comment above a declaration, by full name ("optfarm.v1.Job.job_id"),
  // with wrapped lines joined; "" when there is none. A field right below
  // another, without a comment of its own, shares the other's.
  absl::string_view Of(absl::string_view full_name) const;

  // The comment at the head of the file that declares the service.
  absl::string_view OfServicesFile(absl::string_view service) const;

 private:
  std::map<std::string, std::string, std::less<>> comments_;
  std::map<std::string, std::string, std::less<>> files_;
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_PROTO_COMMENTS_H_
