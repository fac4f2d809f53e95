#include "storage/s3/xml_tree.h"

#include <expat.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace optfarm::storage {
namespace {

// Several times what a page of 1,000 objects has.
constexpr size_t kMaxElements = 50'000;
constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxBytes = size_t{16} << 20;

struct Builder {
  XML_Parser parser;
  // The elements that are open, outermost first; the first is no element.
  std::vector<XmlElement> open;
  size_t elements = 0;
  const char* refused = nullptr;

  void Refuse(const char* reason) {
    refused = reason;
    XML_StopParser(parser, XML_FALSE);
  }
};

void Begin(void* data, const XML_Char* name, const XML_Char** /*attributes*/) {
  Builder& builder = *static_cast<Builder*>(data);
  if (++builder.elements > kMaxElements || builder.open.size() > kMaxDepth) {
    builder.Refuse("it has too many elements");
    return;
  }
  builder.open.emplace_back().name = name;
}

void End(void* data, const XML_Char* /*name*/) {
  Builder& builder = *static_cast<Builder*>(data);
  if (builder.refused != nullptr) return;
  XmlElement ended = std::move(builder.open.back());
  builder.open.pop_back();
  builder.open.back().children.push_back(std::move(ended));
}

void Text(void* data, const XML_Char* text, int length) {
  Builder& builder = *static_cast<Builder*>(data);
  builder.open.back().text.append(text, static_cast<size_t>(length));
}

void Doctype(void* data, const XML_Char* /*name*/, const XML_Char* /*system*/,
             const XML_Char* /*public_id*/, int /*internal*/) {
  static_cast<Builder*>(data)->Refuse("it declares a document type");
}

}  // namespace

const XmlElement* XmlElement::Child(absl::string_view child_name) const {
  for (const XmlElement& child : children) {
    if (child.name == child_name) return &child;
  }
  return nullptr;
}

std::string XmlElement::ChildText(absl::string_view child_name) const {
  const XmlElement* child = Child(child_name);
  return child == nullptr ? "" : child->text;
}

absl::StatusOr<XmlElement> ParseXml(absl::string_view text) {
  if (text.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("an XML text of ", text.size(), " bytes is too long"));
  }
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(
      XML_ParserCreate("UTF-8"), XML_ParserFree);
  if (parser == nullptr) {
    return absl::ResourceExhaustedError("no memory for an XML parser");
  }
  Builder builder{parser.get(), std::vector<XmlElement>(1)};
  XML_SetUserData(parser.get(), &builder);
  XML_SetElementHandler(parser.get(), Begin, End);
  XML_SetCharacterDataHandler(parser.get(), Text);
  XML_SetStartDoctypeDeclHandler(parser.get(), Doctype);
  const XML_Status status = XML_Parse(parser.get(), text.data(),
                                      static_cast<int>(text.size()), XML_TRUE);
  if (builder.refused != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("an XML text is refused: ", builder.refused));
  }
  if (status != XML_STATUS_OK || builder.open.size() != 1 ||
      builder.open[0].children.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a text is not XML: ", XML_ErrorString(XML_GetErrorCode(parser.get())),
        " in line ", XML_GetCurrentLineNumber(parser.get())));
  }
  return std::move(builder.open[0].children[0]);
}

}  // namespace optfarm::storage
