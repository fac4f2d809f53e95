// Schemas of messages and enums for the description of the door. Internal to
// the room.

#ifndef OPTFARM_HTTP_OPEN_API_SCHEMAS_H_
#define OPTFARM_HTTP_OPEN_API_SCHEMAS_H_

#include <google/protobuf/descriptor.h>

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "http/proto_comments.h"

namespace optfarm::http {

// {"$ref":"#/components/KIND/NAME"}.
std::string OpenApiReference(absl::string_view kind, absl::string_view name);

// Gathers the schemas that are asked for, and those that they need.
class OpenApiSchemas {
 public:
  // OWNERSHIP: the comments outlive this.
  explicit OpenApiSchemas(const ProtoComments& comments)
      : comments_(comments) {}

  // The schema of a field's values, without its description.
  std::string OfField(const google::protobuf::FieldDescriptor& field);
  std::string OfMessage(const google::protobuf::Descriptor& type);

  // What is said about a field: its own comment or, without one, its type's.
  std::string TextOf(const google::protobuf::FieldDescriptor& field) const;

  // All so far, as members of a JSON object.
  std::string Write() const;

 private:
  std::string OfEnum(const google::protobuf::EnumDescriptor& type);
  std::string OfOne(const google::protobuf::FieldDescriptor& field);
  std::string Property(const google::protobuf::FieldDescriptor& field);
  std::string Object(const google::protobuf::Descriptor& type);

  const ProtoComments& comments_;
  std::map<std::string, std::string> schemas_;
};

}  // namespace optfarm::http

#endif  // OPTFARM_HTTP_OPEN_API_SCHEMAS_H_
