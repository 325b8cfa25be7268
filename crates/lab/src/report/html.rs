//! Renders a page as one HTML file with the template `page.html`.

use super::{Attachment, Block, OverviewPage, Page, Picture, Section, Table, picture};
use aws_lc_rs::digest::{SHA256, digest};
use data_encoding::BASE64;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Error, context};

/// Maximum size of an attachment. A larger file is not part of the page.
const ATTACHMENT_OCTETS_MAX: usize = 512 * 1024;

const PAGE: &str = include_str!("page.html");
const OVERVIEW: &str = include_str!("overview.html");
const TABLE: &str = include_str!("table.html");
const BARS: &str = include_str!("bars.svg");
const LINES: &str = include_str!("lines.svg");
const PICTURE: &str = include_str!("picture.svg");
const STYLE: &str = concat!(include_str!("style.css"), include_str!("picture.css"));
const SCRIPT: &str = include_str!("page.js");

/// Renders the page. Its Content Security Policy forbids the browser to load anything, and to apply
/// any style or run any script other than those of this module, which it names by their hash. So
/// even a fault in this module, for example in the escaping, cannot make the browser do so.
pub(super) fn render_page(page: &Page) -> Result<String, Error> {
    let renderer = Renderer::new()?;
    let Page { title, lead, facts, run_facts, attachment, sections } = page;
    let sections: Vec<Value> =
        sections.iter().map(|part| renderer.section(part)).collect::<Result<_, _>>()?;
    let [style, script] = [STYLE, SCRIPT].map(|text| Value::from_safe_string(text.to_owned()));
    let attachment = attachment.as_ref().filter(|file| file.octets.len() <= ATTACHMENT_OCTETS_MAX);
    let attachment = attachment.map(|file| context! { name => &file.name, address => file.address() });
    let variables = context! {
        policy => Value::from_safe_string(policy(&[STYLE], &[SCRIPT])),
        title, lead, facts, run_facts, attachment, sections, style, script
    };
    renderer.environment.render_str(PAGE, variables)
}

/// Renders the overview, whose policy permits no script.
pub(super) fn render_overview(page: &OverviewPage) -> Result<String, Error> {
    let mut environment = Renderer::new()?.environment;
    environment.add_function("verdict", verdict);
    environment.add_function("link", link);
    let variables = context! {
        policy => Value::from_safe_string(policy(&[STYLE], &[])),
        style => Value::from_safe_string(STYLE.to_owned()),
        page => Serde(page),
    };
    environment.render_str(OVERVIEW, variables)
}

/// Renders a picture of a chain of trust as an SVG file with its own style sheet.
pub(super) fn render_picture(picture: &Picture) -> Result<String, Error> {
    let style = Value::from_safe_string(picture::STYLE.to_owned());
    let variables = context! { style, ..picture.template_variables() };
    Renderer::new()?.environment.render_str(PICTURE, variables)
}

/// Returns a verdict with its sign, so that it does not depend on the colour.
fn verdict(name: &str) -> Value {
    let sign = match name {
        "agrees" => "✓",
        "differs" => "≠",
        _ => "–",
    };
    let text = name.replace('-', " ");
    Value::from_safe_string(format!(
        "<span class=\"verdict {}\">{sign} {}</span>",
        escape(name),
        escape(&text)
    ))
}

/// Returns a link, or the name alone if there is no report.
fn link(name: &str, address: &str) -> Value {
    let (name, address) = (escape(name), escape(address));
    let link = if address.is_empty() { name } else { format!("<a href=\"{address}\">{name}</a>") };
    Value::from_safe_string(link)
}

/// Returns the Content Security Policy (W3C, CSP Level 3) of a page with these styles and scripts.
fn policy(styles: &[&str], scripts: &[&str]) -> String {
    let sources = |texts: &[&str]| {
        let source =
            |text: &&str| format!("'sha256-{}'", BASE64.encode(digest(&SHA256, text.as_bytes()).as_ref()));
        if texts.is_empty() {
            "'none'".to_owned()
        } else {
            texts.iter().map(source).collect::<Vec<_>>().join(" ")
        }
    };
    let (style, script) = (sources(styles), sources(scripts));
    format!("default-src 'none'; base-uri 'none'; form-action 'none'; style-src {style}; script-src {script}")
}

impl Attachment {
    /// Returns the file as the address of a link: a `data:` URL (RFC 2397).
    fn address(&self) -> String {
        format!("data:{};base64,{}", self.media_type, BASE64.encode(&self.octets))
    }
}

/// Renders the parts of a page with their templates.
struct Renderer {
    environment: Environment<'static>,
}

impl Renderer {
    fn new() -> Result<Self, Error> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).keep_trailing_newline(false).build()?;
        environment.set_syntax(syntax);
        environment.set_formatter(|out, _, value| {
            let text = value.to_string();
            Ok(out.write_str(&if value.is_safe() { text } else { escape(&text) })?)
        });
        environment.add_filter("at", |position: f64| format!("{position:.1}"));
        environment.add_filter("prose", |text: &str| Value::from_safe_string(prose(text)));
        Ok(Self { environment })
    }

    fn section(&self, section: &Section) -> Result<Value, Error> {
        let blocks = section.blocks.iter().map(|part| self.block(part));
        Ok(context! { title => &section.title, blocks => blocks.collect::<Result<Vec<Value>, Error>>()? })
    }

    fn block(&self, block: &Block) -> Result<Value, Error> {
        Ok(match block {
            Block::Paragraph(text) => context! { text },
            Block::Notes(notes) => context! { notes },
            Block::Terms(terms) => context! { terms },
            Block::Charts(charts) => {
                let charts = charts.iter();
                let charts =
                    charts.map(|chart| self.chart(BARS, chart.template_variables(), &chart.data_table()));
                context! { charts => charts.collect::<Result<Vec<Value>, Error>>()? }
            }
            Block::LineCharts(charts) => {
                let charts = charts.iter();
                let charts =
                    charts.map(|chart| self.chart(LINES, chart.template_variables(), &chart.data_table()));
                context! { charts => charts.collect::<Result<Vec<Value>, Error>>()? }
            }
            Block::Picture(picture) => {
                context! { picture => self.part(PICTURE, &picture.template_variables())? }
            }
            Block::Table(table) => context! { table => self.table(table)? },
            Block::TextTable(table) => {
                let variables = context! { table => table.template_variables(), class => "texts items" };
                context! { table => self.part(TABLE, &variables)? }
            }
            Block::Listing(listing) => context! { listing },
        })
    }

    /// Returns the variables of a chart, with its drawing and the table of its data.
    fn chart(&self, template: &str, variables: Value, data: &Table) -> Result<Value, Error> {
        let drawing = self.part(template, &variables)?;
        Ok(context! { drawing, table => self.table(data)?, ..variables })
    }

    fn table(&self, table: &Table) -> Result<Value, Error> {
        self.part(TABLE, &context! { table => table.template_variables() })
    }

    /// Renders a part whose markup the page then contains unchanged.
    fn part(&self, template: &str, variables: &Value) -> Result<Value, Error> {
        Ok(Value::from_safe_string(self.environment.render_str(template, variables)?))
    }
}

/// Escapes a text for HTML. Words between backticks become code.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut parts = text.split('`').peekable();
    let mut is_code = false;
    while let Some(part) = parts.next() {
        // A backtick without a partner is part of the text.
        let (start, end) = match (is_code, parts.peek()) {
            (false, _) => ("", ""),
            (true, Some(_)) => ("<code>", "</code>"),
            (true, None) => ("`", ""),
        };
        out.push_str(start);
        out.push_str(&escape(part));
        out.push_str(end);
        is_code = !is_code;
    }
    out
}

/// Escapes text for HTML, between tags and in quoted attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            letter => out.push(letter),
        }
    }
    out
}
