#include "http/proto_comments.h"

#include <google/protobuf/descriptor.pb.h>

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace optfarm::http {
namespace {

using ::google::protobuf::DescriptorProto;
using ::google::protobuf::EnumDescriptorProto;
using ::google::protobuf::FileDescriptorProto;
using ::google::protobuf::FileDescriptorSet;
using Location = ::google::protobuf::SourceCodeInfo::Location;
using Path = std::vector<int>;
using Comments = std::map<std::string, std::string, std::less<>>;

// Wrapped lines become one; indented ones, a list's, stay lines.
std::string Reflow(absl::string_view comment) {
  std::string text;
  for (absl::string_view line : absl::StrSplit(comment, '\n')) {
    if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    line = absl::StripTrailingAsciiWhitespace(line);
    const bool goes_on = !text.empty() && text.back() != '\n' &&
                         !line.empty() && line.front() != ' ';
    absl::StrAppend(&text, text.empty() ? "" : (goes_on ? " " : "\n"), line);
  }
  return std::string(absl::StripAsciiWhitespace(text));
}

// The comments of one file.
class Reader {
 public:
  Reader(const FileDescriptorProto& file, Comments& comments)
      : comments_(comments) {
    for (const Location& location : file.source_code_info().location()) {
      locations_[Path(location.path().begin(), location.path().end())] =
          &location;
    }
    for (int i = 0; i < file.message_type_size(); ++i) {
      AddMessage(file.message_type(i), file.package(),
                 {FileDescriptorProto::kMessageTypeFieldNumber, i});
    }
    for (int i = 0; i < file.enum_type_size(); ++i) {
      AddEnum(file.enum_type(i), file.package(),
              {FileDescriptorProto::kEnumTypeFieldNumber, i});
    }
    for (int i = 0; i < file.service_size(); ++i) {
      AddService(file.service(i), file.package(),
                 {FileDescriptorProto::kServiceFieldNumber, i});
    }
  }

  std::string HeadOfFile() const {
    return TextAt({FileDescriptorProto::kSyntaxFieldNumber});
  }

 private:
  std::string TextAt(const Path& path) const {
    const auto found = locations_.find(path);
    return found == locations_.end()
               ? ""
               : Reflow(found->second->leading_comments());
  }

  // The lines that a declaration takes; both -1 when not known.
  std::pair<int, int> LinesAt(const Path& path) const {
    const auto found = locations_.find(path);
    if (found == locations_.end() || found->second->span_size() < 3) {
      return {-1, -1};
    }
    const auto& span = found->second->span();
    return {span[0], span.size() == 4 ? span[2] : span[0]};
  }

  static Path Below(Path path, int field, int index) {
    path.push_back(field);
    path.push_back(index);
    return path;
  }

  void AddMessage(const DescriptorProto& type, absl::string_view scope,
                  const Path& path) {
    const std::string name = absl::StrCat(scope, ".", type.name());
    comments_[name] = TextAt(path);
    std::string above;
    int last_line = -1;
    for (int i = 0; i < type.field_size(); ++i) {
      const Path at = Below(path, DescriptorProto::kFieldFieldNumber, i);
      const auto [first, last] = LinesAt(at);
      std::string text = TextAt(at);
      if (text.empty() && first >= 0 && first == last_line + 1) text = above;
      comments_[absl::StrCat(name, ".", type.field(i).name())] = text;
      above = text;
      last_line = last;
    }
    for (int i = 0; i < type.nested_type_size(); ++i) {
      AddMessage(type.nested_type(i), name,
                 Below(path, DescriptorProto::kNestedTypeFieldNumber, i));
    }
    for (int i = 0; i < type.enum_type_size(); ++i) {
      AddEnum(type.enum_type(i), name,
              Below(path, DescriptorProto::kEnumTypeFieldNumber, i));
    }
  }

  void AddEnum(const EnumDescriptorProto& type, absl::string_view scope,
               const Path& path) {
    const std::string name = absl::StrCat(scope, ".", type.name());
    comments_[name] = TextAt(path);
    for (int i = 0; i < type.value_size(); ++i) {
      // As C++ has it, a value's full name is in the scope of its enum.
      comments_[absl::StrCat(scope, ".", type.value(i).name())] =
          TextAt(Below(path, EnumDescriptorProto::kValueFieldNumber, i));
    }
  }

  void AddService(const ::google::protobuf::ServiceDescriptorProto& service,
                  absl::string_view scope, const Path& path) {
    const std::string name = absl::StrCat(scope, ".", service.name());
    comments_[name] = TextAt(path);
    for (int i = 0; i < service.method_size(); ++i) {
      const int field =
          ::google::protobuf::ServiceDescriptorProto::kMethodFieldNumber;
      comments_[absl::StrCat(name, ".", service.method(i).name())] =
          TextAt(Below(path, field, i));
    }
  }

  Comments& comments_;
  std::map<Path, const Location*> locations_;
};

absl::string_view Find(const Comments& comments, absl::string_view name) {
  const auto found = comments.find(name);
  return found == comments.end() ? absl::string_view() : found->second;
}

}  // namespace

ProtoComments::ProtoComments(absl::string_view descriptors) {
  FileDescriptorSet set;
  if (!set.ParseFromArray(descriptors.data(),
                          static_cast<int>(descriptors.size()))) {
    return;
  }
  for (const FileDescriptorProto& file : set.file()) {
    const Reader reader(file, comments_);
    for (const auto& service : file.service()) {
      files_[absl::StrCat(file.package(), ".", service.name())] =
          reader.HeadOfFile();
    }
  }
}

absl::string_view ProtoComments::Of(absl::string_view full_name) const {
  return Find(comments_, full_name);
}

absl::string_view ProtoComments::OfServicesFile(
    absl::string_view service) const {
  return Find(files_, service);
}

}  // namespace optfarm::http
