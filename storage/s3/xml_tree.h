// The XML answers of an object store as a small tree. An answer is hostile:
// depth and number of elements are bounded, and document types are refused.

#ifndef OPTFARM_STORAGE_S3_XML_TREE_H_
#define OPTFARM_STORAGE_S3_XML_TREE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace optfarm::storage {

struct XmlElement {
  std::string name;
  // Of this element, without that of its children.
  std::string text;
  std::vector<XmlElement> children;

  // The first child of that name; null when there is none.
  const XmlElement* Child(absl::string_view child_name) const;
  // Its text; empty when there is none.
  std::string ChildText(absl::string_view child_name) const;
};

// ERRORS: InvalidArgument for what is not XML, and for more than the bounds.
absl::StatusOr<XmlElement> ParseXml(absl::string_view text);

}  // namespace optfarm::storage

#endif  // OPTFARM_STORAGE_S3_XML_TREE_H_
