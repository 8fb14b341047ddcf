// Reads a page of HTML that is also well-formed XML into a tree, for tests of eval's report.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rk {

struct PageElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // includes that of the elements inside
  std::vector<PageElement> children;

  std::string attribute(const std::string& key) const;  // "" if there is none
  bool has_class(const std::string& word) const;
};

// Returns the root; throws std::runtime_error with the place if the page is not well-formed.
PageElement read_page(std::string_view page);

// All elements for which `wanted` holds, in the order of the page.
std::vector<const PageElement*> find_all(const PageElement& root,
                                         const std::function<bool(const PageElement&)>& wanted);
std::vector<const PageElement*> find_all(const PageElement& root, const std::string& name,
                                         const std::string& of_class = "");

}  // namespace rk
