// Swagger UI over the document of this instance; nothing is asked of any other host.
SwaggerUIBundle({
  dom_id: "#viewer",
  url: "/openapi.json",
  validatorUrl: null,
  deepLinking: true,
  showExtensions: true,
});
